"""What a page must be: parsed once, asked by the tests."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}
SAVED = "data:text/csv;charset=utf-8,"
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


class Element:
    """A parsed element: its tag, attributes, children and the text in it."""

    def __init__(self, tag: str, attributes: dict[str, str], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Element] = []
        self.own_text = ""

    def all(self, *tags: str) -> list[Element]:
        matches = [self] if self.tag in tags or not tags else []
        for child in self.children:
            matches += child.all(*tags)
        return matches

    @property
    def text(self) -> str:
        return self.own_text + "".join(child.text for child in self.children)


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {}, None)
        self.at = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {k: v or "" for k, v in attrs}, self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Element(tag, {k: v or "" for k, v in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.own_text += data


def parse(page: str) -> Element:
    """The tree of a page; an error where its tags do not nest."""
    tree = _Tree()
    tree.feed(page)
    tree.close()
    assert tree.at is tree.root, f"<{tree.at.tag}> is not closed"
    return tree.root


def faults(page: str) -> list[str]:
    """What bars people from reading the page, or lets it do more than be read; none where it is good."""
    root = parse(page)
    problems: list[str] = []
    ids = [e.attributes["id"] for e in root.all() if "id" in e.attributes]
    problems += [f"id {name} twice" for name in {i for i in ids if ids.count(i) > 1}]
    if root.all("html")[0].attributes.get("lang") != "en":
        problems.append("no language")
    if not root.all("title")[0].text.strip():
        problems.append("no title")
    if len(root.all("h1")) != 1 or len(root.all("main")) != 1:
        problems.append("not one h1 and one main")
    level = 0
    for heading in root.all(*HEADINGS):
        if int(heading.tag[1]) > level + 1:
            problems.append(f"{heading.tag} {heading.text!r} skips a level")
        level = int(heading.tag[1])
        if not heading.text.strip():
            problems.append(f"an empty {heading.tag}")
    for table in root.all("table"):
        if not table.all("caption") or not table.all("caption")[0].text.strip():
            problems.append("a table without caption")
        if any(cell.attributes.get("scope") not in ("col", "row") for cell in table.all("th")):
            problems.append("a header cell without scope")
        width = len(table.all("thead")[0].all("th"))
        if any(len(row.all("th", "td")) != width for row in table.all("tbody")[0].all("tr")):
            problems.append("rows of a table differ in length")
    for chart in root.all("svg"):
        named = [chart.attributes.get("aria-labelledby"), chart.attributes.get("aria-describedby")]
        if chart.attributes.get("aria-hidden") != "true" and not (
            chart.attributes.get("role") == "img" and all(name in ids for name in named)
        ):
            problems.append("a chart without a name and a description")
    for link in root.all("a"):
        if link.attributes["href"].startswith(SAVED) and link.attributes.get("download", "").endswith(".csv"):
            continue  # a table to be saved: it goes nowhere
        if not link.attributes["href"].startswith("#") or link.attributes["href"][1:] not in ids:
            problems.append(f"a link to {link.attributes['href']}")
    for element in root.all():
        if element.tag in ("script", "img", "iframe", "object", "embed", "link", "form", "foreignobject", "image"):
            problems.append(f"an element {element.tag}")
        for key, value in element.attributes.items():
            if key.startswith("on") or key == "style" or "javascript:" in value.lower():
                problems.append(f"attribute {key}={value!r}")
            if key in ("href", "xlink:href", "src") and not value.startswith(("#", SAVED)):
                problems.append(f"{key} {value!r} leaves the page")
    return problems


def contrast(one: str, other: str) -> float:
    """The ratio of the luminances of two colours, from 1 to 21 (WCAG 2)."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
