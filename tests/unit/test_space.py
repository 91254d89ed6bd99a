"""The README's front matter makes a Space that starts."""

import re
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def front_matter() -> dict[str, str]:
    block = (ROOT / "README.md").read_text(encoding="utf-8").split("---")[1]
    return dict(re.findall(r"^(\w+): (.+)$", block, flags=re.MULTILINE))


def test_the_space_s_gradio_satisfies_the_requirements():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").split()
    gradio = next(Requirement(line) for line in lines if line.startswith("gradio"))
    assert front_matter()["sdk"] == "gradio"
    assert gradio.specifier.contains(front_matter()["sdk_version"])


def test_the_space_s_texts_fit():
    fields = front_matter()
    assert len(fields["short_description"]) <= 60
    assert (ROOT / fields["app_file"]).is_file()
    assert fields["license"] == "apache-2.0" and (ROOT / "LICENSE").is_file()


def test_every_file_that_the_readme_shows_is_there():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    local = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")]
    assert local and all((ROOT / link).exists() for link in local)
