"""Videos hold the pictures that were put in, and errors say what to do."""

import sys

import numpy as np
import pytest

from protege import ProtegeError
from protege.video import write_video


def film(count=12, width=120, height=120):
    """A bright bar that wanders over a dark slope."""
    slope = np.linspace(0, 60, width * height).reshape(height, width, 1) * np.array([0.2, 1.0, 0.5])
    pictures = [slope.astype(np.uint8) & 0xF8 for _ in range(count)]
    for i, picture in enumerate(pictures):
        picture[8 * i : 8 * i + 6] = (250, 220, 40)
    return pictures


@pytest.mark.needs("imageio", "PIL")
def test_a_gif_holds_every_picture_in_its_colours(tmp_path):
    from PIL import Image

    pictures = film()
    write_video(iter(pictures), tmp_path / "game.gif", 27.34 / 2)
    with Image.open(tmp_path / "game.gif") as file:
        assert (file.size, getattr(file, "n_frames", 1), file.info["loop"]) == ((120, 120), 12, 0)
        lasting = 0
        for i, picture in enumerate(pictures):
            file.seek(i)
            lasting += file.info["duration"]
            error = np.abs(np.asarray(file.convert("RGB")).astype(int) - picture)
            assert error.mean() < 3 and np.percentile(error, 99.5) < 40
    assert abs(lasting - 12 * 2000 / 27.34) <= 10  # frames last 70 or 80 ms, so that the whole keeps time


@pytest.mark.needs("imageio", "av")
@pytest.mark.parametrize("ending", ["mp4", "webm", "MP4"])
def test_videos_hold_every_picture_and_pad_odd_sizes(tmp_path, ending):
    import imageio.v3

    pictures = film(width=121, height=119)
    path = tmp_path / f"game.{ending}"
    write_video(pictures, path, 27.34)
    back = imageio.v3.imread(path, plugin="pyav")
    assert back.shape == (12, 120, 122, 3)
    assert imageio.v3.immeta(path, plugin="pyav")["fps"] == pytest.approx(27.34, abs=0.05)
    assert np.abs(back[3, :119, :121].astype(int) - pictures[3]).mean() < 12


def test_recordings_say_what_is_wrong(tmp_path, monkeypatch):
    with pytest.raises(ProtegeError, match=r"\.gif, \.mp4 or \.webm; got 'game\.avi'"):
        write_video(film(1), tmp_path / "game.avi", 27)
    with pytest.raises(ProtegeError, match="no pictures"):
        write_video([], tmp_path / "game.gif", 27)
    with pytest.raises(ProtegeError, match="above 0"):
        write_video(film(1), tmp_path / "game.gif", 0)
    with pytest.raises(ProtegeError, match="there is no folder"):
        write_video(film(1), tmp_path / "nowhere" / "game.gif", 27)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ProtegeError, match=r"needs PIL: pip install 'protege\[viewer\]'"):
        write_video(film(1), tmp_path / "game.gif", 27)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ProtegeError, match=r"needs av: pip install 'protege\[viewer\]'"):
        write_video(film(1), tmp_path / "game.mp4", 27)
