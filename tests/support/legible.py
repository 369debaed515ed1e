"""Whether what a page shows can be read."""

from typing import Any

# Contrast of every piece of text with what lies behind it (WCAG 2.2, relative luminance).
CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), e = walker.currentNode.parentElement;
    if (!text || e.closest("script, style, title, desc, noscript, option") ||
        !e.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(e), svg = e.closest("svg");
    const ink = parse(svg ? style.fill : style.color), paper = behind(svg ?? e);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
    found.push({ text, ratio: (a + 0.05) / (b + 0.05) });
  }
  return found; }"""


def contrast(page: Any) -> list[dict[str, Any]]:
    """Every piece of text that is shown, with its contrast: `text` and `ratio`."""
    return page.evaluate(CONTRAST)
