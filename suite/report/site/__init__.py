"""The report as a site of static pages: an index, a page for each paper, a page for each artifact.

Offline and from ``file://``: every page stands without a request and without its script.
"""
