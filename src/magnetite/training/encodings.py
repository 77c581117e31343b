"""Positional encodings by name: the encodings of a model, and the encoders that read them.

A configuration is a mapping from names to options, `{"magnetic": {"k": 25, "encoder": "maglapnet"}, "walks": {}}`.
"""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from typing import Any, get_type_hints

import torch

from magnetite.encodings import DEFAULT_SIZE, ENCODINGS
from magnetite.linalg.potential import Adaptive, Potential
from magnetite.nn.encoders import ENCODERS, Combined, PositionEncoder
from magnetite.training.options import (
    Option,
    argument_help,
    check_choice,
    is_plain,
    known_option,
    make,
    options_of,
    plain,
)

FOLLOWING = ("encoding", "width", "heads", "layers", "of")
"""Arguments of encoders that follow from the encoding and the model."""

SHORTHANDS: dict[str, tuple[str, dict[str, Any]]] = {
    "multi-q": ("spe", {"q": tuple(Adaptive(0.25 * number) for number in range(1, 6))}),
}
"""Names that stand for another encoding with other defaults."""


@dataclass(frozen=True)
class EncodingPart:
    """One encoding and the encoder that reads it.

    Args:
        name: Its name in the configuration.
        encoder: Name of the encoder in `ENCODERS`.
        encoding: The class of the encoding in `ENCODINGS`; None if the encoder reads the graph itself.
        options: Values of the fields of the encoding.
        encoder_options: Values of the arguments of the encoder.
    """

    name: str
    encoder: str
    encoding: type | None
    options: Mapping[str, Any]
    encoder_options: Mapping[str, Any]

    @classmethod
    def from_dict(
        cls, name: str, table: Mapping[str, Any], potential: Callable[[float], Potential] = Adaptive
    ) -> "EncodingPart":
        """The encoding of this name, with these options and defaults for the others.

        Args:
            name: Its name in the configuration.
            table: Options by name.
            potential: What makes a default potential from `q'`: `Adaptive` or `Relative`.
        """
        where = f"encoding.{name}"
        encoding, encoder, defaults = _resolved(name, table.get("encoder"))
        known, own = options_named(name, encoder), _encoding_options(encoding)
        values = {
            option: known_option(known, option, where).typed(value, f"{where}.{option}")
            for option, value in {**defaults, **table}.items()
        }
        filled = {option: values.get(option, known[option].default) for option in known if option != "encoder"}
        if "q" in filled and "q" not in table:
            filled["q"] = _with_potential(filled["q"], potential)
        part = cls(
            name,
            encoder,
            encoding,
            {option: value for option, value in filled.items() if option in own and value is not MISSING},
            {option: value for option, value in filled.items() if option not in own},
        )
        part.made(width=DEFAULT_SIZE)  # which checks the options of the encoding
        if part.options.get("dtype") == torch.float64:
            raise ValueError(f"{where}.dtype must not be float64: models compute in single precision")
        # Without memory for parameters, which checks the options of the encoder; one that cannot be made this way is
        # checked with the model.
        with torch.device("meta"), suppress(RuntimeError):
            part.build(DEFAULT_SIZE, heads=1, layers=1)
        return part

    def to_dict(self) -> dict[str, Any]:
        """The options as a table in JSON types, the inverse of `from_dict`."""
        return plain({**self.options, "encoder": self.encoder, **self.encoder_options})

    def deciding(self) -> dict[str, Any]:
        """The table for a hash: without options that older configurations lack, while these have their defaults."""
        known, table = options_named(self.name, self.encoder), self.to_dict()
        kept = {**self.options, **self.encoder_options}
        unchanged = [name for name in kept if known[name].later and kept[name] == known[name].default]
        return {name: value for name, value in table.items() if name not in unchanged}

    def made(self, width: int) -> Any:
        """The encoding for a model of this width; None if there is none."""
        if self.encoding is None:
            return None
        width_follows = "width" in _encoding_options(self.encoding) and "width" not in self.options
        options = {**self.options, "width": width} if width_follows else self.options
        return make(self.encoding, options, f"encoding.{self.name}")

    def build(self, width: int, heads: int, layers: int, of: str | None = None) -> PositionEncoder:
        """The encoder with new parameters; `of` is the name of the encoding in a batch, if not the default."""
        given = {} if of is None else {"of": of}
        try:
            return ENCODERS[self.encoder].build(self.made(width), width, heads, layers, **self.encoder_options, **given)
        except ValueError as error:
            raise ValueError(f"encoding.{self.name}: {error}") from None


@dataclass(frozen=True)
class PositionalEncodings:
    """The encodings of a model, in order; their sum is added to the node embeddings.

    Args:
        parts: The encodings with their encoders; none for a model without positions.

    >>> PositionalEncodings.from_dict({"walks": {"steps": 2}}).to_dict()["walks"]["restart"]
    0.05
    """

    parts: tuple[EncodingPart, ...] = ()

    @classmethod
    def from_dict(
        cls, tables: Mapping[str, Any], potential: Callable[[float], Potential] = Adaptive
    ) -> "PositionalEncodings":
        """From a mapping of names to options; `potential` makes a default potential from `q'`."""
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                raise ValueError(f"encoding.{name}={table!r} must be a table of options: name an encoding first")
        return cls(tuple(EncodingPart.from_dict(name, table, potential) for name, table in tables.items()))

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """A mapping in JSON types, the inverse of `from_dict`."""
        return {part.name: part.to_dict() for part in self.parts}

    def build(self, width: int, heads: int, layers: int) -> PositionEncoder | None:
        """The encoder of all parts for a model of these sizes; None without positions."""
        built: list[PositionEncoder] = []
        held: dict[str, Any] = {}
        for part in self.parts:
            encoder = part.build(width, heads, layers)
            if any(held.setdefault(name, encoding) != encoding for name, encoding in encoder.encodings().items()):
                encoder = part.build(width, heads, layers, of=part.name)  # another encoding has the usual name
            built.append(encoder)
        return None if not built else built[0] if len(built) == 1 else Combined(built)


def named(text: str) -> list[str]:
    """The names in `magnetic+walks`; an empty list for `none`.

    >>> named("magnetic+relative-walks"), named("none")
    (['magnetic', 'relative-walks'], [])
    """
    names = [] if text == "none" else text.split("+")
    for name in names:
        check_choice("encoding", name, names_known())
    if len(set(names)) < len(names):
        raise ValueError(f"encoding {text!r} has the same name twice: name each encoding once")
    if "none" in names:
        raise ValueError(f"encoding {text!r} combines none with others: use none alone, or leave it out")
    return names


def names_known() -> tuple[str, ...]:
    """All names that a configuration may hold, and `none`."""
    return tuple(dict.fromkeys([*ENCODINGS, *ENCODERS, *SHORTHANDS, "none"]))


def options_named(name: str, encoder: str | None = None) -> dict[str, Option]:
    """The options of a part by name: fields of its encoding, `encoder`, and arguments of the encoder.

    >>> list(options_named("pair-walks"))
    ['encoder', 'steps', 'root']
    """
    encoding, chosen, _ = _resolved(name, encoder)
    own = _encoding_options(encoding)
    choice = {"encoder": Option("encoder", str, chosen, "Name of the encoder.")}
    return {**own, **choice, **{key: value for key, value in _encoder_options(chosen).items() if key not in own}}


def _with_potential(q: Any, potential: Callable[[float], Potential]) -> Any:
    """A default with the task's kind of potential in place of `Adaptive`."""
    if isinstance(q, tuple):
        return tuple(_with_potential(each, potential) for each in q)
    return potential(q.q) if isinstance(q, Adaptive) else q


def _resolved(name: str, encoder: str | None) -> tuple[type | None, str, dict[str, Any]]:
    """Class of the encoding, name of the encoder, and options that replace their defaults."""
    base, defaults = SHORTHANDS.get(name, (name, {}))
    check_choice("encoding", base, names_known())
    if base in ENCODINGS:
        encoding = ENCODINGS[base]
        reading = tuple(key for key, each in ENCODERS.items() if encoding in each.reads)
        if not reading:
            raise ValueError(f"no encoder reads the encoding {base!r}: add one to magnetite.nn.encoders.ENCODERS")
    else:
        reads = ENCODERS[base].reads
        encoding, reading = reads[0] if reads else None, (base,)
    chosen = encoder if encoder is not None else reading[0]
    check_choice(f"encoder of {name}", chosen, reading)
    return encoding, chosen, defaults


def _encoding_options(encoding: type | None) -> dict[str, Option]:
    """Fields of the encoding; a `width` without a default is that of the model, other sizes have `DEFAULT_SIZE`."""
    if encoding is None:
        return {}
    return {
        name: replace(option, default=DEFAULT_SIZE) if option.default is MISSING and name != "width" else option
        for name, option in options_of(encoding).items()
    }


def _encoder_options(encoder: str) -> dict[str, Option]:
    """Arguments of `build` beside those that are always given; where it passes others on, those of the constructor."""
    kind = ENCODERS[encoder]
    hints, described = get_type_hints(kind.build), argument_help(kind)
    found = {}
    for name, parameter in inspect.signature(kind.build).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            constructor = options_of(kind).items()
            found |= {key: option for key, option in constructor if is_plain(option.hint) and key not in found}
        elif name not in FOLLOWING:
            found[name] = Option(name, hints[name], parameter.default, described.get(name, ""))
    return {name: option for name, option in found.items() if name not in FOLLOWING and option.default is not MISSING}
