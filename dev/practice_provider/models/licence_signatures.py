"""What licences look like: sentences that only one licence has, and the names by which others' texts refer to them.

Everything here is in folded form (see `FoldedText`): lower case, words only, one space between them, a space at each
end. Ids are those of the SPDX licence list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """A full licence text. `anchors` are alternative opening sentences; all of `needs` must stand
    between the anchor and the next licence (with `whole`: anywhere behind the anchor). Of two signatures with one
    anchor the more special one stands first in the list."""

    spdx_id: str
    anchors: tuple[str, ...]
    needs: tuple[str, ...] = ()
    whole: bool = False


_MIT = (" permission is hereby granted free of charge to any person obtaining a copy of this ",)
_ISC = (
    " permission to use copy modify and or distribute this software for any purpose with or without fee is hereby "
    "granted ",
    " permission to use copy modify and distribute this software for any purpose with or without fee is hereby "
    "granted ",
)
_BSD = (
    " redistribution and use in source and binary forms with or without modification are permitted ",
    " redistribution and use in source and binary forms of the software as well as documentation with or without "
    "modification are permitted ",
    " redistribution and use of this software in source and binary forms with or without modification are permitted ",
    " redistribution and use in source and binary forms with or without modification is permitted ",
)
_HPND = (
    " permission to use copy modify and distribute this software and its documentation for any purpose ",
    " permission to use copy modify and distribute this software for any purpose without fee is hereby granted ",
    " permission to use copy modify and distribute this software and its associated documentation for any purpose ",
    " permission to use copy modify distribute and sell this software and its documentation for any purpose ",
)
_BINARY_NOTICE = " in binary form must reproduce the above copyright "
_NO_ENDORSEMENT = " to endorse or promote products derived from "

SIGNATURES: tuple[Signature, ...] = (
    Signature("JSON", _MIT, (" shall be used for good not evil ",)),
    Signature("NCSA", _MIT, (" redistributions of source code must retain ", " nor the names of ")),
    Signature("X11", _MIT, (" except as contained in this notice the name ",)),
    Signature("MIT", _MIT, (" copyright notice and this permission notice ",)),
    Signature("MIT-0", _MIT, (" is furnished to do so ",)),
    Signature("MIT", _MIT),
    Signature("ISC", _ISC, (" copyright notice and this permission notice appear ",)),
    Signature("0BSD", _ISC),
    Signature("OpenSSL", _BSD, (" for use in the openssl toolkit ",)),
    Signature("Apache-1.1", _BSD, (" this product includes software developed by the apache software foundation ",)),
    Signature("BSD-3-Clause-Clear", _BSD, (" no express or implied licenses to any party s patent rights ",)),
    Signature("BSD-2-Clause-Patent", _BSD, (" hereby grants to those receiving rights under this license ",)),
    Signature("BSD-4-Clause", _BSD, (" all advertising materials mentioning features ", _NO_ENDORSEMENT)),
    Signature("BSD-3-Clause", _BSD, (_NO_ENDORSEMENT,)),
    Signature("BSD-2-Clause", _BSD, (_BINARY_NOTICE,)),
    Signature("BSD-1-Clause", _BSD, (" must retain the above copyright notice ",)),
    Signature("PostgreSQL", _HPND, (" and without a written agreement is hereby granted ",)),
    Signature(
        "MIT-CMU",
        _HPND,
        (" by obtaining using and or copying this software and or its associated documentation you agree ",),
    ),
    Signature("HPND", _HPND),
    Signature(
        "Apache-2.0",
        (" apache license version 2 0 january 2004 ", " terms and conditions for use reproduction and distribution 1 "),
    ),
    Signature("MPL-2.0", (" mozilla public license version 2 0 1 definitions ",)),
    Signature("MPL-1.1", (" mozilla public license version 1 1 1 definitions ",)),
    Signature("AGPL-3.0", (" gnu affero general public license version 3 19 november 2007 ",)),
    Signature("LGPL-3.0", (" gnu lesser general public license version 3 29 june 2007 ",)),
    Signature("LGPL-2.1", (" gnu lesser general public license version 2 1 february 1999 ",)),
    Signature("LGPL-2.0", (" gnu library general public license version 2 june 1991 ",)),
    Signature("GPL-3.0", (" gnu general public license version 3 29 june 2007 ",)),
    Signature("GPL-2.0", (" gnu general public license version 2 june 1991 ",)),
    Signature("GPL-1.0", (" gnu general public license version 1 february 1989 ",)),
    Signature("GFDL-1.3", (" gnu free documentation license version 1 3 3 november 2008 ",)),
    Signature("GFDL-1.2", (" gnu free documentation license version 1 2 november 2002 ",)),
    Signature(
        "Python-2.0",
        (" python software foundation license version 2 ",),
        (" beopen com license agreement for python 2 0 ", " cnri license agreement for python 1 6 1 "),
        whole=True,
    ),
    Signature(
        "PSF-2.0",
        (
            " python software foundation license version 2 ",
            " this license agreement is between the python software foundation ",
        ),
    ),
    Signature(
        "CNRI-Python",
        (" this license agreement is between the corporation for national research initiatives ",),
    ),
    Signature("Unlicense", (" this is free and unencumbered software released into the public domain ",)),
    Signature(
        "Zlib",
        (" this software is provided as is without any express or implied warranty ",),
        (" altered source versions must be plainly marked as such ",),
    ),
    Signature("CC0-1.0", (" cc0 1 0 universal ", " creativecommons org publicdomain zero 1 0 ")),
    Signature("CC-BY-SA-4.0", (" attribution sharealike 4 0 international ",)),
    Signature("CC-BY-4.0", (" attribution 4 0 international ",)),
    Signature("CC-BY-SA-3.0", (" attribution sharealike 3 0 unported ",)),
    Signature("CC-BY-3.0", (" attribution 3 0 unported ",)),
    Signature("Artistic-2.0", (" the artistic license 2 0 ", " artistic license 2 0 copyright ")),
    Signature("ClArtistic", (" the clarified artistic license ",)),
    Signature(
        "Artistic-1.0-Perl",
        (" the artistic license preamble the intent of this document is to state the conditions ",),
        (" aggregation of this package with a commercial distribution is always permitted ",),
        whole=True,
    ),
    Signature(
        "Artistic-1.0", (" the artistic license preamble the intent of this document is to state the conditions ",)
    ),
    Signature("EPL-2.0", (" eclipse public license v 2 0 ", " eclipse public license version 2 0 ")),
    Signature("EPL-1.0", (" eclipse public license v 1 0 ", " eclipse public license version 1 0 ")),
    Signature(
        "BSL-1.0",
        (
            " boost software license version 1 0 august 17th 2003 ",
            " permission is hereby granted free of charge to any person or organization obtaining a copy of the "
            "software and accompanying documentation covered by this license ",
        ),
    ),
    Signature("WTFPL", (" do what the fuck you want to public license ",)),
    Signature("ZPL-2.1", (" zope public license zpl version 2 1 ",)),
    Signature("ZPL-2.0", (" zope public license zpl version 2 0 ",)),
    Signature("OFL-1.1", (" sil open font license version 1 1 ",)),
    Signature("AFL-3.0", (" academic free license afl v 3 0 ", " academic free license version 3 0 ")),
    Signature("BlueOak-1.0.0", (" blue oak model license version 1 0 0 ",)),
    Signature("UPL-1.0", (" universal permissive license upl version 1 0 ", " universal permissive license v 1 0 ")),
    Signature("EUPL-1.2", (" european union public licence v 1 2 ",)),
    Signature("CDDL-1.0", (" common development and distribution license cddl version 1 0 ",)),
    Signature("MulanPSL-2.0", (" mulan permissive software license version 2 ",)),
    Signature("MS-PL", (" microsoft public license ms pl ",)),
    Signature("Beerware", (" the beer ware license ",)),
)

ANCHORS: tuple[str, ...] = tuple(dict.fromkeys(anchor for signature in SIGNATURES for anchor in signature.anchors))

_V = r"(?:version |v|v )?"
_PUBLIC = r"(?:general )?public licen[cs]e"

# Names in running text. GNU names carry their version and "or later" after them: see `gnu_id`.
NAME_PATTERNS: tuple[tuple[str, str], ...] = (
    ("MIT-0", r"mit (?:0|no attribution)"),
    ("MIT", r"mit(?: x11| expat)?|expat licen[cs]e"),
    ("Apache-2.0", rf"(?:apache|asl)(?: software)?(?: public)?(?: licen[cs]e)? {_V}2(?: 0)?|apache2(?: 0)?"),
    ("Apache-1.1", rf"apache(?: software)?(?: licen[cs]e)? {_V}1 1"),
    ("Apache-2.0", r"apache(?: software)? licen[cs]e|apache(?= or )"),
    ("BSD-3-Clause", r"(?:3|three) clause (?:modified |revised )?bsd|bsd (?:3|three) clause|bsd3"),
    ("BSD-3-Clause", r"(?:new|modified|revised) bsd"),
    ("BSD-2-Clause", r"(?:2|two) clause (?:simplified )?bsd|bsd (?:2|two) clause|simplified bsd|bsd2"),
    ("0BSD", r"0bsd|zero clause bsd|bsd zero clause"),
    ("ISC", r"isc"),
    ("MPL-2.0", rf"(?:mozilla public licen[cs]e(?: mpl)?|mpl) {_V}2(?: 0)?|mpl2(?: 0)?"),
    ("MPL-1.1", rf"(?:mozilla public licen[cs]e(?: mpl)?|mpl) {_V}1 1"),
    ("AGPL", rf"(?:gnu )?affero {_PUBLIC}|agpl ?{_V}\d?\+?"),
    ("LGPL", rf"(?:gnu )?(?:lesser|library)(?: or lesser)? {_PUBLIC}|(?:gnu )?lgpl ?{_V}\d?\+?"),
    ("GPL", rf"(?:gnu )?general {_PUBLIC}|(?:gnu )?general public licen[cs]e|(?:gnu )?gpl ?{_V}\d?\+?"),
    ("CNRI-Python", r"cnri s python 1 6 licen[cs]e"),
    ("PSF-2.0", r"python software foundation licen[cs]e(?: version 2)?|psf(?: 2 0)?(?: licen[cs]e)?|python licen[cs]e"),
    ("Unlicense", r"unlicense"),
    ("Zlib", r"zlib(?: libpng)?"),
    ("CC0-1.0", r"cc0|creative commons zero"),
    ("CC-BY-SA-4.0", r"cc by sa 4 0|creative commons attribution sharealike 4 0"),
    ("CC-BY-4.0", r"cc by 4 0|creative commons attribution 4 0"),
    ("BSL-1.0", r"boost software licen[cs]e|bsl 1 0"),
    ("EPL-2.0", rf"(?:eclipse public licen[cs]e|epl) {_V}2(?: 0)?"),
    ("EPL-1.0", rf"(?:eclipse public licen[cs]e|epl) {_V}1(?: 0)?"),
    ("Artistic-2.0", rf"artistic licen[cs]e {_V}2(?: 0)?"),
    ("WTFPL", r"wtfpl"),
    ("ZPL-2.1", rf"(?:zope public licen[cs]e|zpl)(?: zpl)? ?{_V}2 1"),
    ("OFL-1.1", r"sil open font licen[cs]e|ofl 1 1"),
    ("HPND", r"hpnd|historical permission notice and disclaimer"),
    ("PostgreSQL", r"postgresql licen[cs]e"),
    ("BlueOak-1.0.0", r"blue oak model licen[cs]e"),
)

NAME = re.compile("|".join(f"(?P<n{i}> (?:{pattern}) )" for i, (_, pattern) in enumerate(NAME_PATTERNS)))

_GNU_VERSION = re.compile(r" (?:licen[cs]e )?(?:l?gpl|agpl)? ?(?:version |v)?(\d)(?: ([01])\b)?(\+)?(?![\d])")
_GNU_VERSION_LATER = re.compile(r" version (\d)(?: ([01])\b)?(\+)?")
_OR_LATER = re.compile(r" or (?:any )?later | any later version | or newer | or above ")


def gnu_id(family: str, named: str, after: str) -> str | None:
    """The id of a GNU licence named in running text: `named` is the name itself, `after` the words that follow.

    None without a version: then the text leaves it open. "Only" is taken unless the text says "or later".
    """
    inside = re.search(r"(?:gpl ?v?|version |v)(\d)(\+)? $", named)
    if inside:
        major, plus = inside[1], inside[2]
        minor = re.match(r" ([01])\b(\+)?", after)
        plus = plus or (minor and minor[2])
        number = f"{major}.{minor[1] if minor else 0}"
    else:
        found = _GNU_VERSION.match(after) or _GNU_VERSION_LATER.search(after[:140])
        if not found:
            return None
        number, plus = f"{found[1]}.{found[2] or 0}", found[3]
    later = bool(plus) or bool(_OR_LATER.search(after[:200]))
    return f"{family}-{number}-{'or-later' if later else 'only'}"


# Sentences by which a text itself licenses patents.
PATENT_GRANTS: tuple[str, ...] = (
    " grant of patent license ",
    " irrevocable except as stated in this section patent license ",
    " under patent claims of such contributor ",
    " under patents claims infringable by ",
    " royalty free patent license ",
    " royalty free fully paid up patent license ",
    " grants each user a patent license ",
    " non exclusive worldwide royalty free patent license ",
    " licenses you to do everything with this software that would otherwise infringe any patent claims ",
    " under its licensed patents ",
    " any and all patent rights owned or freely licensable ",
    " grants to those receiving rights under this license ",
)

WARRANTY_DISCLAIMERS: tuple[str, ...] = (
    " without warranty of any kind ",
    " without warranties of any kind ",
    " without warranties or conditions of any kind ",
    " without any warranty ",
    " without any warranties ",
    " without any express or implied warranty ",
    " without express or implied warranty ",
    " any express or implied warranties ",
    " all express or implied warranties ",
    " any express or implied warranty ",
    " disclaims all warranties ",
    " disclaim all warranties ",
    " disclaimer of warranty ",
    " disclaimer of warranties ",
    " there is no warranty ",
    " comes with no warranty ",
    " comes with absolutely no warranty ",
    " no warranty ",
    " makes no representations or warranties ",
    " offers no warranties ",
    " provides no warranties ",
    " without any warranty or condition ",
)
