"""Save, load and refuse training state. One checkpoint is one safetensors file; its header holds one JSON document.

Weights go in under their own names; everything else as nested dictionaries, lists, numbers, tensors and arrays, which
come out exactly as they were. Nothing is ever unpickled: a checkpoint cannot run code. What is damaged, foreign or of
another version is refused with one line that says what to do.
"""

import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from protege import ProtegeError, __version__
from protege.runs.files import replacing
from protege.runs.run import now, source_commit

FORMAT: Final = 1
DOCUMENT: Final = "protege"  # the header's key for the JSON document
CHECKSUM: Final = "checksum"
STATE: Final = "state:"  # begins the names of tensors that stood inside the state
HEADER_BYTES: Final = 100_000_000  # safetensors reads no longer header
DTYPES: Final = {  # what safetensors calls them
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8",
}  # fmt: skip


class CheckpointError(ProtegeError):
    """A file that is no checkpoint, or no longer a whole one."""


class CheckpointMismatch(CheckpointError):
    """A good checkpoint of something else: another task or learner."""


@dataclass(frozen=True)
class Checkpoint:
    """What a file held."""

    path: Path
    tensors: dict[str, Tensor]
    state: dict[str, Any]
    kind: str  # who can use it, such as "chess-ppo"
    task_version: int
    saved: str
    protege: str
    commit: str | None


def save(path: Path, tensors: Mapping[str, Tensor], state: Mapping[str, Any], *, kind: str, task_version: int) -> None:
    """Write a checkpoint in place of the one before. `state` may hold tensors and arrays at any depth."""
    lifted: dict[str, Tensor] = {}
    commit = source_commit()
    document = {
        "format": FORMAT, "kind": kind, "task_version": task_version, "saved": now(), "protege": __version__,
        "torch": torch.__version__, "commit": commit and commit.hash + "-dirty" * commit.dirty,
        "state": _lift(dict(state), STATE, lifted),
    }  # fmt: skip
    text = json.dumps(document, allow_nan=False)
    assert not any(name.startswith(STATE) for name in tensors), f"names of tensors may not start with {STATE}"
    stored = _separate({**tensors, **lifted})
    try:
        with replacing(path) as draft:
            _write(draft, stored, {DOCUMENT: text, CHECKSUM: f"{_checksum(text, stored):08x}"})
    except OSError as error:
        raise CheckpointError(f"{path} could not be saved, what was there before is untouched: {error}") from error


def load(path: Path, *, kind: str | None = None, task_version: int | None = None) -> Checkpoint:
    """Read a checkpoint onto the CPU; raises unless it is whole and, where given, of that kind and task version."""
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            # Copied, because what safetensors gives may still be the file's own pages.
            stored = {name: file.get_tensor(name).clone() for name in file.keys()}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path} {_why_unreadable(path)} ({error})") from error
    if DOCUMENT not in header:
        raise CheckpointError(f"{path} was not written by Protege: it holds tensors, but nothing says what they are")
    document = _parsed(header[DOCUMENT])
    made = f"made by Protege {document.get('protege')}, commit {document.get('commit') or 'unknown'}"
    if "format" in document and document["format"] != FORMAT:
        raise CheckpointError(f"{path} has format {document['format']}, expected {FORMAT}: it was {made}")
    if header.get(CHECKSUM) != f"{_checksum(header[DOCUMENT], stored):08x}":
        raise CheckpointError(f"{path} is damaged, its contents do not match their checksum: use another checkpoint")
    if kind is not None and document["kind"] != kind:
        raise CheckpointMismatch(f"{path} is a checkpoint of {document['kind']}, expected {kind}")
    if task_version is not None and document["task_version"] != task_version:
        versions = f"was trained on task version {document['task_version']}, this is version {task_version}"
        raise CheckpointMismatch(f"{path} {versions}: train anew, or use what it was {made}")
    tensors = {name: tensor for name, tensor in stored.items() if not name.startswith(STATE)}
    about = {key: document[key] for key in ("kind", "task_version", "saved", "protege", "commit")}
    return Checkpoint(path, tensors, _lower(document["state"], stored), **about)


# The state as JSON. What JSON does not know becomes an object with one key that starts with "$".


def _lift(value: Any, name: str, lifted: dict[str, Tensor]) -> Any:
    """The value as JSON holds it; tensors and arrays move to `lifted` under names that say where they stood."""
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in "biuf":
            raise TypeError(f"{name} holds {value.dtype}, which no checkpoint can hold")
        array = np.require(value, value.dtype.newbyteorder("="), ["C", "W"])  # as torch wants it
        key = "$array" if isinstance(value, np.ndarray) else "$scalar"
        return {key: _lift_tensor(torch.from_numpy(array), name, lifted)}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Tensor):
        return {"$tensor": _lift_tensor(value, name, lifted)}
    if isinstance(value, list | tuple):
        parts = [_lift(part, f"{name}.{index}", lifted) for index, part in enumerate(value)]
        return parts if isinstance(value, list) else {"$tuple": parts}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _lift(part, f"{name}.{key}", lifted) for key, part in value.items()}
        if all(isinstance(key, int | str) for key in value):
            return {"$map": [[key, _lift(part, f"{name}.{key}", lifted)] for key, part in value.items()]}
    raise TypeError(f"{name} is a {type(value).__name__}, which no checkpoint can hold")


def _lift_tensor(tensor: Tensor, name: str, lifted: dict[str, Tensor]) -> str:
    while name in lifted:  # keys 1 and "1" of one dictionary
        name += "'"
    lifted[name] = tensor
    return name


def _lower(value: Any, stored: Mapping[str, Tensor]) -> Any:
    """The opposite of `_lift`."""
    if isinstance(value, list):
        return [_lower(part, stored) for part in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("$tensor" | "$array" | "$scalar" as kind, held)]:
            array = stored[held].numpy() if kind != "$tensor" else stored[held]
            return array[()] if kind == "$scalar" else array
        case [("$float", held)]:
            return float(held)
        case [("$tuple", held)]:
            return tuple(_lower(held, stored))
        case [("$map", held)]:
            return {key: _lower(part, stored) for key, part in held}
    return {key: _lower(part, stored) for key, part in value.items()}


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous CPU tensors; those that share memory with another one (tied weights, views) as copies."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        found[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    return found


def _checksum(text: str, stored: Mapping[str, Tensor]) -> int:
    """Over everything that is stored: safetensors notices a short file, but not a changed number."""
    found = zlib.crc32(text.encode())
    for name in sorted(stored):
        tensor = stored[name]
        shape = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        found = zlib.crc32(_bytes(tensor), zlib.crc32(f"{name} {shape}".encode(), found))
    return found


def _write(path: Path, stored: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """The safetensors format. Its own writer copies the tensors, or leaves files behind when it is killed."""
    ordered = sorted(stored, key=lambda name: (-stored[name].element_size(), name))  # so that all are aligned
    table: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in ordered:
        tensor = stored[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name} is a tensor of {tensor.dtype}, which no checkpoint can hold")
        table[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in ordered:
            file.write(_bytes(stored[name]))


def _bytes(tensor: Tensor) -> memoryview:
    # Torch does not view nothing as bytes.
    return tensor.reshape(-1).view(torch.uint8).numpy().data if tensor.numel() else memoryview(b"")


def _parsed(text: str) -> dict[str, Any]:
    """The document, or an empty one if this is none: then the checksum is wrong as well."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _why_unreadable(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(9)
        size = os.fstat(file.fileno()).st_size
    if start[:2] == b"PK" or start[:1] == b"\x80":
        return "is a pickle, which Protege never opens because it could run any code: save it as safetensors"
    header = int.from_bytes(start[:8], "little")
    if size < 9 or (start[8:] == b"{" and size < 8 + header <= HEADER_BYTES):
        return "is cut short: use another checkpoint"
    if start[8:] != b"{" or header > HEADER_BYTES:
        return "is no safetensors file"
    return "is damaged or cut short: use another checkpoint"
