"""What the page costs a visitor: times, long tasks and bytes, measured in a real Chromium."""
