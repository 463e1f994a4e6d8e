"""Made-up words whose frequencies follow Zipf's law,
as in a real text: `made-words:tuples=100000,words=20000`.

The word of rank r is the number r written with syllables as digits, so it is the same in every stream.
Options: tuples, rate (words per second of event time), seed, words (how many different words), z (exponent).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.generation.rank_laws import numbered_times
from evenflow.settings.word_options import WordOptions
from evenflow.sources.event_time import render_times
from evenflow.sources.recorded import Draw
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, bounded

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def open_made_words(rest: str, options: SourceOptions) -> TableSource:
    """The words as a bounded source with the columns `word` and `time`, or with the names in the options."""
    words = WordOptions(rest, owner="made-words")
    draw = Draw.of(words, tuples=100_000, rate=1_000.0)
    different = words.integer("words", 20_000, least=1)
    exponent = words.number("z", 1.0, above=-1e-12)
    words.done()
    ranks, places = np.unique(draw.ranks(different, exponent), return_inverse=True)
    drawn = draw.texts([word_of(int(rank)) for rank in ranks], places)
    key, time, unit = options.key or "word", options.time or "time", options.time_unit or "ms"
    times = numbered_times(0, draw.tuples, rate=draw.rate)
    table = pa.table({key: drawn, time: render_times(times, unit)})
    return bounded("made-words", table, options, key=key, time=time, time_unit=unit)


def word_of(rank: int) -> str:
    """The word of a rank. Different ranks have different words."""
    word = SYLLABLES[rank % len(SYLLABLES)]
    while rank := rank // len(SYLLABLES):
        word += SYLLABLES[rank % len(SYLLABLES)]
    return word


FORMAT = SourceFormat("made-words", "made-up words with the frequencies of a text", open_made_words)
