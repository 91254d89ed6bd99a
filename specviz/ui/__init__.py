"""The page, on Gradio: knows traces, figures and the engine's facade, and no torch."""

from specviz.ui.page import build_page
from specviz.ui.request import VisitorLimits
from specviz.ui.words import make_i18n

__all__ = ["VisitorLimits", "build_page", "make_i18n"]
