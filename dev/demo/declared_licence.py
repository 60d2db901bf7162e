"""What a distribution's own metadata declares as its licence, as a set of SPDX ids that are right answers.

License-Expression (core metadata 2.4) is taken first, then the Trove classifiers, then a License field that is
nothing but a licence's name. Classifiers such as "BSD License" leave the variant open, so they give every id that the
name covers. Nothing is guessed: where the metadata does not tell, the set is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BSD = ("BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause")
_PSF = ("PSF-2.0", "Python-2.0", "Python-2.0.1")
_APACHE = ("Apache-2.0", "Apache-1.1")
_ARTISTIC = ("Artistic-1.0", "Artistic-1.0-Perl", "Artistic-2.0", "ClArtistic")
_CLASSIFIER_PREFIX = "License ::"


def _gnu(family: str, *versions: str, later_only: bool = False) -> tuple[str, ...]:
    suffixes = ("or-later",) if later_only else ("only", "or-later")
    return tuple(f"{family}-{version}-{suffix}" for version in versions for suffix in suffixes)


# Last part of a Trove licence classifier -> ids that it covers.
CLASSIFIERS: dict[str, tuple[str, ...]] = {
    "Academic Free License (AFL)": ("AFL-1.1", "AFL-1.2", "AFL-2.0", "AFL-2.1", "AFL-3.0"),
    "Apache Software License": _APACHE,
    "Artistic License": _ARTISTIC,
    "BSD License": _BSD,
    "Blue Oak Model License (BlueOak-1.0.0)": ("BlueOak-1.0.0",),
    "Boost Software License 1.0 (BSL-1.0)": ("BSL-1.0",),
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": ("CC0-1.0",),
    "CMU License (MIT-CMU)": ("MIT-CMU", "HPND"),
    "CEA CNRS Inria Logiciel Libre License, version 2.1 (CeCILL-2.1)": ("CECILL-2.1",),
    "Common Development and Distribution License 1.0 (CDDL-1.0)": ("CDDL-1.0",),
    "Eclipse Public License 1.0 (EPL-1.0)": ("EPL-1.0",),
    "Eclipse Public License 2.0 (EPL-2.0)": ("EPL-2.0",),
    "European Union Public Licence 1.1 (EUPL 1.1)": ("EUPL-1.1",),
    "European Union Public Licence 1.2 (EUPL 1.2)": ("EUPL-1.2",),
    "GNU Affero General Public License v3": _gnu("AGPL", "3.0"),
    "GNU Affero General Public License v3 or later (AGPLv3+)": _gnu("AGPL", "3.0", later_only=True),
    "GNU General Public License (GPL)": _gnu("GPL", "1.0", "2.0", "3.0"),
    "GNU General Public License v2 (GPLv2)": _gnu("GPL", "2.0"),
    "GNU General Public License v2 or later (GPLv2+)": _gnu("GPL", "2.0", later_only=True),
    "GNU General Public License v3 (GPLv3)": _gnu("GPL", "3.0"),
    "GNU General Public License v3 or later (GPLv3+)": _gnu("GPL", "3.0", later_only=True),
    "GNU Lesser General Public License v2 (LGPLv2)": _gnu("LGPL", "2.0", "2.1"),
    "GNU Lesser General Public License v2 or later (LGPLv2+)": _gnu("LGPL", "2.0", "2.1", later_only=True),
    "GNU Lesser General Public License v3 (LGPLv3)": _gnu("LGPL", "3.0"),
    "GNU Lesser General Public License v3 or later (LGPLv3+)": _gnu("LGPL", "3.0", later_only=True),
    "GNU Library or Lesser General Public License (LGPL)": _gnu("LGPL", "2.0", "2.1", "3.0"),
    "Historical Permission Notice and Disclaimer (HPND)": ("HPND", "MIT-CMU"),
    "ISC License (ISCL)": ("ISC",),
    "MIT License": ("MIT",),
    "MIT No Attribution License (MIT-0)": ("MIT-0",),
    "Mozilla Public License 1.0 (MPL)": ("MPL-1.0",),
    "Mozilla Public License 1.1 (MPL 1.1)": ("MPL-1.1",),
    "Mozilla Public License 2.0 (MPL 2.0)": ("MPL-2.0",),
    "Mulan Permissive Software License v2 (MulanPSL-2.0)": ("MulanPSL-2.0",),
    "Python License (CNRI Python License)": ("CNRI-Python", *_PSF),
    "Python Software Foundation License": _PSF,
    "SIL Open Font License 1.1 (OFL-1.1)": ("OFL-1.1",),
    "The Unlicense (Unlicense)": ("Unlicense",),
    "Universal Permissive License (UPL)": ("UPL-1.0",),
    "University of Illinois/NCSA Open Source License": ("NCSA",),
    "Zero-Clause BSD (0BSD)": ("0BSD",),
    "Zope Public License": ("ZPL-2.0", "ZPL-2.1"),
    "zlib/libpng License": ("Zlib",),
}

# A License field that is just a name, folded by `_fold` -> ids that it covers.
_NAMES: dict[str, tuple[str, ...]] = {
    "mit": ("MIT",),
    "mit-0": ("MIT-0",),
    "apache": _APACHE,
    "apache-2.0": ("Apache-2.0",),
    "apache 2": ("Apache-2.0",),
    "apache 2.0": ("Apache-2.0",),
    "asl 2.0": ("Apache-2.0",),
    "bsd": _BSD,
    "bsd 2-clause": ("BSD-2-Clause",),
    "bsd-2-clause": ("BSD-2-Clause",),
    "bsd 3-clause": ("BSD-3-Clause",),
    "bsd-3-clause": ("BSD-3-Clause",),
    "3-clause bsd": ("BSD-3-Clause",),
    "new bsd": ("BSD-3-Clause",),
    "modified bsd": ("BSD-3-Clause",),
    "isc": ("ISC",),
    "mpl-2.0": ("MPL-2.0",),
    "mpl 2.0": ("MPL-2.0",),
    "psf": _PSF,
    "psf-2.0": ("PSF-2.0",),
    "unlicense": ("Unlicense",),
    "zpl 2.1": ("ZPL-2.1",),
    "lgpl": _gnu("LGPL", "2.0", "2.1", "3.0"),
    "gpl": _gnu("GPL", "1.0", "2.0", "3.0"),
}

_KNOWN_IDS = frozenset(spdx_id for ids in (*CLASSIFIERS.values(), *_NAMES.values()) for spdx_id in ids)
_DEPRECATED_GNU = re.compile(r"(?i)^(AGPL|LGPL|GPL)-(\d\.\d)(\+?)$")


def _fold(name: str) -> str:
    folded = re.sub(r"\s+", " ", name.lower().replace(",", " ").replace("software license", "license")).strip(" .")
    folded = re.sub(r"^the ", "", folded)
    folded = re.sub(r"\b(licen[cs]e|version)\b", "", folded)
    return re.sub(r"\s+", " ", folded).replace(" v2", " 2").strip()


def _ids_of_expression(expression: str) -> set[str]:
    """Every simple id of an SPDX expression: a single file of a compound distribution may carry any of them."""
    ids: set[str] = set()
    tokens = re.findall(r"[A-Za-z0-9.+\-:]+", expression)
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token.upper() in {"AND", "OR", "WITH"} or before.upper() == "WITH" or "LicenseRef" in token:
            continue
        gnu = _DEPRECATED_GNU.match(token)
        if gnu:
            ids.update(_gnu(gnu[1].upper(), gnu[2], later_only=bool(gnu[3])))
        else:
            ids.add(token)
    return ids


def _ids_of_name(licence: str) -> set[str]:
    """Ids of a License field that is a licence's name, or an expression of ids that are known here."""
    expressed = _ids_of_expression(licence)
    if expressed and expressed <= _KNOWN_IDS:
        return expressed
    return set(_NAMES.get(_fold(licence), ()))


def acceptable_ids(expression: str | None, classifiers: Iterable[str], licence: str | None) -> tuple[str, ...]:
    """SPDX ids that are right answers for a licence file of this distribution, sorted; empty when nobody can tell."""
    if expression and expression.strip():
        return tuple(sorted(_ids_of_expression(expression)))
    ids: set[str] = set()
    for classifier in classifiers:
        if classifier.startswith(_CLASSIFIER_PREFIX):
            ids.update(CLASSIFIERS.get(classifier.rsplit(" :: ", 1)[-1].strip(), ()))
    if not ids and licence and len(licence) < 80:
        ids.update(_ids_of_name(licence))
    return tuple(sorted(ids))
