"""The site in one file: its pages one after another, with styles, script and pictures inside."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from urllib.parse import unquote, urljoin, urlsplit

from suite.report.site.render import ASSETS, INDEX

APART = "article{margin-top:6rem}"  # between two pages
ADDRESSES = re.compile(r'(?<=\s)(id|aria-labelledby|href|src)="([^"]*)"')
# Links to files that are not inside, and small copies of pictures that are.
LEFT_OUT = re.compile(r'<ul class="files">.*?</ul>\n|<a class="picture"[^>]* aria-hidden="true">.*?</a>', re.DOTALL)


def joined(site: Mapping[str, bytes]) -> str:
    """The pages of a site as one page, in their order."""
    pages = [name for name in site if name.endswith(".html") and name != INDEX]
    first, articles = _inside(site, INDEX), [_article(name, _inside(site, name)) for name in pages]
    style, script = (site[name].decode() for name in ASSETS)
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{seal}'; style-src 'unsafe-inline'; img-src data:"
    # The script stands at the end: it reads the page, and an inline script cannot wait by itself.
    parts = {
        r"default-src [^\"]*(?=; base-uri)": policy,
        r'<link rel="stylesheet"[^>]*>': f"<style>\n{style}{APART}\n</style>",
        r"<script [^>]*></script>": "",
        r"</main>": "\n".join(articles) + "\n</main>",
        r"</body>": f"<script>{script}</script>\n</body>",
    }
    for old, new in parts.items():
        before, after = re.split(old, first, maxsplit=1)
        first = f"{before}{new}{after}"
    return first


def _inside(site: Mapping[str, bytes], page: str) -> str:
    """A page's text whose ids begin with its name, whose links lead to pages in the same file, with its pictures."""

    def address(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name in ("id", "aria-labelledby"):
            return f'{name}="{" ".join(_anchor(page, part) for part in value.split())}"'
        if urlsplit(value).scheme or value.endswith(ASSETS):
            return found[0]
        target = urlsplit(urljoin(page, value))
        if name == "src":
            picture = unquote(target.path)
            kind, data = mimetypes.guess_type(picture)[0], base64.b64encode(site[picture]).decode()
            return f'src="data:{kind};base64,{data}"'
        return f'href="#{_anchor(unquote(target.path), target.fragment or "main")}"'

    return ADDRESSES.sub(address, LEFT_OUT.sub("", site[page].decode()))


def _anchor(page: str, name: str) -> str:
    """The id that an element of a page has in the one file."""
    return name if page == INDEX else f"{page}:{name}"


def _article(page: str, text: str) -> str:
    """What a page says, without the frame that all pages have."""
    name = _anchor(page, "main")
    head = text.partition("<header>")[2].partition("</header>")[0]
    main = text.partition(f'<main id="{name}">')[2].partition("</main>")[0]
    return f'<article id="{name}">{head}{main}</article>'
