"""The demo's rule-based reader: what it makes of texts that are written here by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dev.practice_provider.models.licence import MAX_EVIDENCE, find_document, read_licence

AS_IS = 'THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED.'
MIT_GRANT = """Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, and to permit persons to whom the Software
is furnished to do so"""
MIT_NOTICE = """, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software."""
MIT = f"{MIT_GRANT}{MIT_NOTICE}\n\n{AS_IS}"
BSD_2 = """Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:

1. Redistributions of source code must retain the above copyright notice.
2. Redistributions in binary form must reproduce the above copyright notice.
"""
BSD_3 = f"""{BSD_2}3. Neither the name of the holder nor the names of its contributors may be used
   to endorse or promote products derived from this software.
"""
ISC = """Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted"""
GPL_3 = """        GNU GENERAL PUBLIC LICENSE
           Version 3, 29 June 2007

 Copyright (C) 2007 Free Software Foundation, Inc. <https://fsf.org/>
 Everyone is permitted to copy and distribute verbatim copies
 of this license document, but changing it is not allowed.

   How to Apply These Terms: either version 3 of the License, or (at your option) any later version.
"""
APACHE_2 = """                 Apache License
           Version 2.0, January 2004
   3. Grant of Patent License. Subject to the terms and conditions of this License,
   each Contributor hereby grants to You a perpetual patent license.
   7. Disclaimer of Warranty. Unless required by law the Work is provided "AS IS".
   Copyright [yyyy] [name of copyright owner]
"""
PSF = (
    "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n1. This LICENSE AGREEMENT is between the Python Software Foundation"
)
FULL_TEXTS = {
    "MIT": [MIT, MIT.replace("\n", "\r\n"), "\n".join(f"# {line}" for line in MIT.splitlines())],
    "MIT-0": [f"{MIT_GRANT}.\n\n{AS_IS}"],
    "BSD-2-Clause": [BSD_2],
    "BSD-3-Clause": [BSD_3],
    "BSD-4-Clause": [BSD_3 + "4. All advertising materials mentioning features must display a notice."],
    "ISC": [ISC + ", provided that the above copyright notice and this permission notice appear in all copies."],
    "0BSD": [ISC + ".\n"],
    "Apache-2.0": [APACHE_2],
    "MPL-2.0": ["Mozilla Public License Version 2.0\n==================\n\n1. Definitions\n--------------\n"],
    "GPL-3.0-only": [GPL_3],
    "GPL-2.0-only": ["GNU GENERAL PUBLIC LICENSE\n Version 2, June 1991\n"],
    "GPL-3.0-or-later": ["This is free software, under version 3 or (at your option) any later version.\n\n" + GPL_3],
    "LGPL-3.0-only": ["GNU LESSER GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n"],
    "LGPL-2.1-only": ["GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999\n"],
    "AGPL-3.0-only": ["GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3, 19 November 2007\n"],
    "PSF-2.0": [PSF],
    "Python-2.0": [f"{PSF}\nBEOPEN.COM LICENSE AGREEMENT FOR PYTHON 2.0\nCNRI LICENSE AGREEMENT FOR PYTHON 1.6.1\n"],
    "Unlicense": ["This is free and unencumbered software released into the public domain.\n"],
    "Zlib": [
        "This software is provided 'as-is', without any express or implied\nwarranty. "
        "Altered source versions must be plainly marked as such."
    ],
    "CC0-1.0": ["Creative Commons Legal Code\n\nCC0 1.0 Universal\n"],
    "CC-BY-4.0": ["Creative Commons Attribution 4.0 International Public License\n"],
    "Artistic-2.0": ["The Artistic License 2.0\n\nCopyright (c) 2000-2006, The Perl Foundation.\n"],
    "EPL-2.0": ["Eclipse Public License - v 2.0\n"],
    "BSL-1.0": ["Boost Software License - Version 1.0 - August 17th, 2003\n"],
    "WTFPL": ["DO WHAT THE FUCK YOU WANT TO PUBLIC LICENSE\nVersion 2, December 2004\n"],
    "HPND": [
        "Permission to use, copy, modify and distribute this software and its documentation for any purpose and "
        "without fee is hereby granted, provided that the above copyright notice appear in all copies."
    ],
    "ZPL-2.1": ["Zope Public License (ZPL) Version 2.1\n"],
    "OFL-1.1": ["SIL OPEN FONT LICENSE Version 1.1 - 26 February 2007\n"],
    "OpenSSL": [BSD_3 + '3. "This product includes software developed for use in the OpenSSL Toolkit"\n'],
}
STATEMENTS = {
    "This project is licensed under the terms of the MIT license.": "MIT",
    "tool is MIT licensed.": "MIT",
    "Text\n\n## License\n\nMIT, see LICENSE.": "MIT",
    "* Free software: BSD 2-Clause License": "BSD-2-Clause",
    "Licensed under the Apache License, Version 2.0 (the License)": "Apache-2.0",
    "available under *either* of the licenses found in LICENSE.APACHE or LICENSE.BSD.": "Apache-2.0",
    "// SPDX-License-Identifier: MPL-2.0\nint x;": "MPL-2.0",
    "under the GNU Lesser General Public License, either version 3 of the License, or any later version": (
        "LGPL-3.0-or-later"
    ),
    "released under the GPLv2+": "GPL-2.0-or-later",
    "released under the GPL v3": "GPL-3.0-only",
    "Subject to the terms of the Mozilla Public License, v. 2.0.": "MPL-2.0",
    "distributed under the 3-clause BSD license": "BSD-3-Clause",
}
SILENT = [
    "# tool\n\nA library that permits limited transmission of zlib streams.",
    "Released under the BSD license.",  # which one is left open
    "Released under the GNU General Public License.",  # which version is left open
    "We moved to GitHub under the new organisation. 3 people contributed.",
    "[![license](https://badges.example/license/x/y.svg)](LICENSE)",
]


@pytest.mark.parametrize(("spdx_id", "text"), [(name, text) for name, texts in FULL_TEXTS.items() for text in texts])
def test_a_full_text_is_known_by_its_sentences(spdx_id: str, text: str) -> None:
    answer = read_licence(text)
    assert answer["spdx_id"] == spdx_id
    assert answer["evidence"] in text


@pytest.mark.parametrize(("text", "spdx_id"), STATEMENTS.items())
def test_a_sentence_that_names_the_licence_is_enough(text: str, spdx_id: str) -> None:
    assert read_licence(text)["spdx_id"] == spdx_id


@pytest.mark.parametrize("text", SILENT)
def test_a_text_that_states_no_definite_licence_gives_null_and_its_first_line(text: str) -> None:
    answer = read_licence(text)
    assert answer["spdx_id"] is None
    assert answer["evidence"] == text.splitlines()[0]


def test_of_several_full_texts_the_first_is_the_works_own() -> None:
    assert read_licence(f"{BSD_2}\n\nBundled:\n\n{BSD_3}\n\n{MIT}")["spdx_id"] == "BSD-2-Clause"
    assert read_licence(f"{MIT}\n\nBundled:\n\n{APACHE_2}")["spdx_id"] == "MIT"


def test_a_sentence_before_the_full_texts_says_which_one_counts() -> None:
    text = f"All code is under the ISC license. Bundled parts:\n\n{MIT}"
    assert read_licence(text)["spdx_id"] == "ISC"


def test_patents_and_warranty_are_read_from_the_text_itself() -> None:
    apache, mit = read_licence(APACHE_2), read_licence(MIT)
    assert (apache["grants_patent_licence"], apache["disclaims_warranty"]) == (True, True)
    assert (mit["grants_patent_licence"], mit["disclaims_warranty"]) == (False, True)
    assert not read_licence("Licensed under the MIT license.")["disclaims_warranty"]


@pytest.mark.parametrize(
    ("line", "holders", "years"),
    [
        ("Copyright (c) 2012-2015 Ada Lovelace <ada@example.org>", ["Ada Lovelace"], [2012, 2015]),
        ("Copyright © 2019, [Example Ltd](https://example.org/).", ["Example Ltd"], [2019]),
        ("Copyright 2017-present Example, Inc. All Rights Reserved.", ["Example, Inc."], [2017]),
        ("# Copyright (c) Example Inc. 2025 to present", ["Example Inc."], [2025]),
        ("(c) 2003 by Max Planck", ["Max Planck"], [2003]),
        ("Copyright (c) 2014, Ada (one), 2013, Bob (two)", ["Ada (one)", "Bob (two)"], [2013, 2014]),
        (
            "Copyright 2006 the Example authors and contributors <see AUTHORS file>.",
            ["the Example authors and contributors"],
            [2006],
        ),
        (
            "Copyright (c) 2009: Jeff B, Stefan K,\nand other contributors",
            ["Jeff B, Stefan K, and other contributors"],
            [2009],
        ),
        ("Copyright [yyyy] [name of copyright owner]", [], []),
        ("Copyright (c) <year> <name of author>", [], []),
        ("Copyright (c) 2026 <copyright holders>", [], []),
        ("Copyright notice and this permission notice", [], []),
        ("copyright holders be liable for any claim", [], []),
        ("(c) You must retain, in the Source form", [], []),
        (GPL_3, [], []),
    ],
)
def test_holders_and_years_come_from_copyright_lines_only(line: str, holders: list[str], years: list[int]) -> None:
    answer = read_licence(f"Title\n\n{line}\n")
    assert (answer["copyright_holders"], answer["copyright_years"]) == (holders, years)


def test_only_the_document_between_the_marker_lines_is_read() -> None:
    message = f"Say which licence, such as GPLv3. License: ISC\n\n<document>\n{MIT}\n</document>"
    assert find_document(message) == MIT
    assert read_licence(message)["spdx_id"] == "MIT"
    assert read_licence("License: ISC\n\n<document>\nhello\n</document>\n")["spdx_id"] is None


def test_a_document_that_contains_the_marker_lines_comes_out_whole() -> None:
    document = "a\n</document>\nb\n<document>\nc"
    assert find_document(f"Instructions\n<document>\n{document}\n</document>\nmore") == document


@given(st.text(max_size=2000))
def test_any_text_is_answered_with_a_quotation_from_it(text: str) -> None:
    answer = read_licence(text)
    assert answer["evidence"] in text
    assert len(answer["evidence"]) <= MAX_EVIDENCE
    assert answer["evidence"].strip() or not text.strip()


PIECES = [MIT, BSD_3, GPL_3, APACHE_2, *STATEMENTS, "İß\u2028ﬁ", "License\n=======\n", "Copyright (c) 2001", " \x0b*> "]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=30)), max_size=12))
@settings(max_examples=200)
def test_the_evidence_for_a_licence_is_a_quotation_however_the_pieces_are_put_together(pieces: list[str]) -> None:
    text = "\n".join(pieces)
    answer = read_licence(f"Read.\n\n<document>\n{text}\n</document>")
    assert answer["evidence"] in text
    assert all(1950 <= year <= 2099 for year in answer["copyright_years"])


@pytest.mark.parametrize(
    "unit",
    ["licensed ", "under the ", "(c) ", "License\n", "Copyright 2001, ,;.\n", "a", "\n", "[", "> * ", MIT, "2001-"],
)
def test_no_text_of_150_kb_takes_long(unit: str) -> None:
    text = unit * (150_000 // len(unit))
    began = time.process_time()
    read_licence(text)
    assert time.process_time() - began < 3  # 0.6 s at worst when written; a catastrophic pattern takes minutes
