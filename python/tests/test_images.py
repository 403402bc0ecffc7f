"""Pictures: read, resized, prepared, and folders of classes. tests/images/peers.py compares with torchvision."""
import numpy as np
import pytest

import weber as wb

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def pets(tmp_path):
    random = np.random.RandomState(1)
    for name in ("cat/1.png", "cat/2.jpg", "dog/1.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(random.randint(0, 256, (30, 40, 3), dtype=np.uint8)).save(path)
    try:
        wb.image_read(tmp_path / "cat/1.png"), wb.image_read(tmp_path / "cat/2.jpg")
    except wb.UnsupportedError as error:
        pytest.skip(str(error))
    return tmp_path


def test_pictures_are_planes(pets):
    for name in ("cat/1.png", "cat/2.jpg"):
        with Image.open(pets / name) as picture:
            wanted = np.asarray(picture).transpose(2, 0, 1)
            assert np.array_equal(np.asarray(wb.image_read(pets / name)), wanted)
            grey = np.asarray(picture.convert("L"))[None]
            assert np.array_equal(np.asarray(wb.image_read(pets / name, channels=1)), grey)


def test_sizes_and_numbers(pets):
    x = wb.image_read(pets / "cat/1.png")
    small = wb.image_resize(x, 20, 10, filter="bicubic")
    with Image.open(pets / "cat/1.png") as picture:
        assert np.array_equal(np.asarray(small), np.asarray(picture.resize((20, 10), Image.BICUBIC)).transpose(2, 0, 1))
    y = wb.image_prepare(x, 32, 24)
    assert y.shape == (3, 24, 24) and y.dtype == wb.float32
    z = wb.image_prepare(x, resize=0, crop=0, mean=(0, 0, 0), std=(1, 1, 0.5))
    assert np.allclose(np.asarray(z)[2], np.asarray(x)[2] / 127.5)
    assert wb.image_crop(x, 8, 6).shape == (3, 6, 8)


def test_folders_are_data(pets):
    folder = wb.ImageFolder(pets, resize=0, crop=20, mean=(0, 0, 0), std=(1, 1, 1))
    assert len(folder) == 3 and folder.classes == ["cat", "dog"] and folder.labels.tolist() == [0, 0, 1]
    assert [p[len(str(pets)) + 1:] for p in folder.paths] == ["cat/1.png", "cat/2.jpg", "dog/1.png"]
    (x, y), (rest, _) = wb.DataLoader(folder, batchsize=2, threads=2)
    assert x.shape == (2, 3, 20, 20) and y.tolist() == [0, 0] and rest.shape == (1, 3, 20, 20)
    whole = np.asarray(wb.image_read(pets / "cat/1.png"))[:, 5:25, 10:30]
    assert np.allclose(np.asarray(x)[0], whole / 255)
    assert wb.ImageFolder(pets, classes=["bird", "cat", "dog"]).labels.tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="lacks the class"):
        wb.ImageFolder(pets, classes=["cat"])
