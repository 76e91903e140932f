"""Pictures into a GIF, MP4 or WebM file. What they show is the caller's business."""

import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protege import ProtegeError


def check_video_path(path: Path) -> str:
    """The file's ending, if a video can be written there: asked before anything is played for it."""
    ending = path.suffix.lower()
    if ending not in (".gif", ".mp4", ".webm"):
        raise ProtegeError(f"a video's file name must end in .gif, .mp4 or .webm; got {path.name!r}")
    if not path.parent.is_dir():
        raise ProtegeError(f"cannot write {path}: there is no folder {path.parent}")
    return ending


def write_video(pictures: Iterable[NDArray[np.uint8]], path: str | Path, frames_per_second: float) -> None:
    """Write pictures (height, width, 3) of one size as a GIF, MP4 or WebM file, by the ending of `path`."""
    path = Path(path)
    ending = check_video_path(path)
    if not (math.isfinite(frames_per_second) and 0 < frames_per_second <= 240):
        raise ProtegeError(f"frames per second must be above 0 and at most 240; got {frames_per_second}")
    frames = iter(pictures)
    if (first := next(frames, None)) is None:
        raise ProtegeError(f"cannot write {path.name}: no pictures were given")
    write = _write_gif if ending == ".gif" else _write_encoded
    try:
        write(chain([first], frames), path, frames_per_second)
    except ImportError as missing:
        raise ProtegeError(f"writing {ending} files needs {missing.name}: pip install 'protege[viewer]'") from missing


def _write_gif(pictures: Iterable[NDArray[np.uint8]], path: Path, frames_per_second: float) -> None:
    """One palette for the whole file and only what changes from picture to picture: small, and nothing flickers."""
    from PIL import Image

    # Five bits a channel: the faintest glow becomes background, and more of a picture equals the one before.
    frames = [np.ascontiguousarray(picture & 0xF8) for picture in pictures]
    sample = np.concatenate([frame[::4, ::2] for frame in frames[:: len(frames) // 256 + 1]])
    shared = Image.fromarray(sample).quantize(255, dither=Image.Dither.NONE)
    images = [Image.fromarray(frame).quantize(palette=shared, dither=Image.Dither.NONE) for frame in frames]
    table = bytes(shared.getpalette() or []).ljust(768, b"\0")
    # The format counts hundredths; browsers slow down whatever is shorter than two of them.
    ends = np.round(np.arange(len(images) + 1) * 100 / frames_per_second).astype(np.int64)
    durations = (10 * np.maximum(2, np.diff(ends))).tolist()
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=durations, loop=0, disposal=1, palette=table,
        optimize=True, transparency=255,
    )  # fmt: skip


def _write_encoded(pictures: Iterable[NDArray[np.uint8]], path: Path, frames_per_second: float) -> None:
    import av  # noqa: F401 - imageio needs it and would not say where to get it
    import imageio.v3

    codec = "libx264" if path.suffix.lower() == ".mp4" else "libvpx-vp9"
    with imageio.v3.imopen(path, "w", plugin="pyav") as file:
        file.init_video_stream(codec, fps=float(frames_per_second), pixel_format="yuv420p")
        for picture in pictures:
            height, width = picture.shape[:2]  # these formats hold even sizes only
            file.write_frame(np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0))))
