"""Finds a model's quotation in its source, so that every quoted span can be shown where it stands.

Three questions in this order: does it stand there character by character; does it in the compared form (fold.py), which
takes no notice of spelling that changes no meaning; do its words stand there but for letters that were misread
(walk.py)? What was found must also begin and end where the meaning allows it (edges.py). A word, number, amount or sign
more, less or other is no quotation; in Chinese no character may differ.
"""

from nightmill.checks.citations.find import Citation, find_citation
from nightmill.checks.citations.nearest import refusal

__all__ = ["Citation", "find_citation", "refusal"]
