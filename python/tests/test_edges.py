"""Edges: what is empty, twice, too large, kept too long or not there."""
import gc
import pickle

import numpy as np
import pytest

import weber as wb


def same(x, a):
    a = np.asarray(a)
    assert x.shape == a.shape, (x.shape, a.shape)
    np.testing.assert_allclose(np.asarray(x), a, rtol=1e-5, atol=1e-5)


def test_integers_beyond_doubles():
    numbers = [2**62 + 1, -(2**62) - 3, 7, 2**63 - 1, -(2**63), 5, -9, 2**53 + 1]
    divisors = [3, 5, -2, 1, 1, -7, 2**62, 3]
    a, b = wb.array(numbers), wb.array(divisors)
    assert a.tolist() == numbers and a.dtype == wb.int64
    assert (a // b).tolist() == [p // q for p, q in zip(numbers, divisors)]
    assert (a % b).tolist() == [p % q for p, q in zip(numbers, divisors)]
    assert (wb.array([7, -7]) // 0).tolist() == [0, 0] and (wb.array([7], "uint8") // 2).dtype == (2 // wb.array([7], "uint8")).dtype == wb.uint8
    assert wb.full((2,), 2**53 + 1).tolist() == [2**53 + 1] * 2 and wb.full_like(a, -(2**63))[0].item() == -(2**63)
    assert wb.array([[True, False]]).dtype == wb.bool and wb.array([2**53 + 1], "float64").item() == 2.0**53


def test_floats_of_lists_have_all_digits_of_their_type():
    assert wb.array(0.1, "float64").item() == 0.1 and wb.array([[0.1]], "float64").tolist() == [[0.1]]
    assert wb.asarray([1, 0.1], dtype=wb.float64).tolist() == [1.0, 0.1]


def test_lists_of_paddings_have_a_number_for_each_dimension():
    for name in ("pad", "stride", "dilation"):
        with pytest.raises(ValueError, match=name + ".*2 dimensions"):
            wb.CrossCor((3, 3), 1, 8, **{name: (1,)})
        wb.CrossCor((3, 3), 1, 8, **{name: 1}), wb.CrossCor((3, 3), 1, 8, **{name: [1, 2]})
    with pytest.raises(ValueError, match="pad"):
        wb.MaxPool((2, 2), pad=[1])


def test_einsum_without_a_result():
    a, b = np.random.randn(2, 3).astype("f4"), np.random.randn(3, 4).astype("f4")
    for text, arrays in (("ij,jk", (a, b)), ("ba", (a,)), ("ij,ij", (a, a)), ("ij, jI", (a, b)), ("ii", (a[:, :2],))):
        same(wb.einsum(text, *map(wb.array, arrays)), np.einsum(text, *arrays))
    with pytest.raises(wb.Error, match="letters"):
        wb.einsum("é->é", wb.ones(2))  # the message is cut within a letter


def test_arange_of_fractions():
    for numbers in ((0, 1, 1 / 3), (0, 1, 0.1), (1, 2, 0.3), (5, 0, -0.5), (0, 0.5), (0.5,), (2, 1, 0.5)):
        same(wb.arange(*numbers), np.arange(*numbers))


def test_at_adds_to_a_place_twice():
    for name, ufunc in (("add", np.add), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum)):
        for key in ([0, 0], np.s_[1:, ::-1], np.s_[0, [1, 1, 2]], np.s_[-1], ([0, 1, 0], [2, 0, 2])):
            a = np.arange(12, dtype="f4").reshape(3, 4)
            x = getattr(wb.array(a).at[key], name)(3.0)
            ufunc.at(a, key, 3.0)
            same(x, a)
    x = wb.zeros(3)
    same(x.at[[0, 0, 2]].add(wb.array([1.0, 2.0, 3.0])), [3, 0, 3])
    same(wb.gradient(lambda x: (x.at[[0, 0]].add(2.0) ** 2).sum(), x), [8, 0, 0])
    same(x.at[1:].get(), [0, 0])
    assert wb.array([1, 2]).at[[0, 0]].add(3).tolist() == [7, 2]
    with pytest.raises(TypeError, match="None"):
        x.at[0].set(None)


def test_a_bool_is_no_index():
    for key in (True, False, (0, True)):
        with pytest.raises(IndexError, match="bool"):
            wb.ones((2, 3))[key]
    with pytest.raises(TypeError, match="without axes"):
        list(wb.array(1))


def test_float16_as_lists_and_pickles():
    x = wb.array([[1.5, -2.0]], dtype="float16")
    assert x.tolist() == [[1.5, -2.0]]
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == "float16" and y.tolist() == x.tolist()


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError):
        wb.array([2**63])
    assert wb.array([2**63, 1.5]).dtype == wb.float32  # as in NumPy: one number with a fraction makes all reals
    with pytest.raises(OverflowError):
        wb.cumsum(wb.ones((2, 3)), axis=2**32)
    with pytest.raises(OverflowError):
        wb.cumsum(wb.ones((2, 3)), 2**32)


def test_settings_of_reductions_are_checked():
    for f in (lambda x: wb.std(x, correction="a"), lambda x: wb.norm(x, ord="a"), lambda x: x.var(0, [1])):
        with pytest.raises(TypeError):
            f(wb.ones((2, 3)))
    a = np.random.randn(3, 4).astype("f4")
    same(wb.std(wb.array(a), axis=0, correction=1), np.std(a, 0, ddof=1))
    for correction in (2, 0.5, 3):
        with np.errstate(all="ignore"):
            same(wb.var(wb.array(a), axis=0, correction=correction), np.var(a, 0, ddof=correction) if correction < 3 else np.full(4, np.nan))


class Lazy:
    """Makes its items when they are asked for."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        if i >= 3:
            raise IndexError(i)
        return wb.ones((2, 2)) * i


def test_sequences_that_make_their_arrays():
    same(wb.concat(Lazy()), np.concatenate([np.full((2, 2), i) for i in range(3)]))
    same(wb.concat(wb.ones((2, 3, 4)) * 2), np.full((6, 4), 2))


def test_dlpack_of_nothing():
    assert wb.from_dlpack(np.zeros((0, 3), "f4")).shape == (0, 3)


def test_negative_argnums():
    x, y = wb.array(2.0), wb.array(3.0)
    assert wb.grad(lambda x, y: x * y * y, argnums=-1)(x, y).item() == 12
    assert [g.item() for g in wb.grad(lambda x, y: x * y, argnums=(0, -1))(x, y)] == [3, 2]


def test_a_loop_that_has_ended_stays_ended():
    loader = wb.DataLoader(wb.ones((4, 1)), batchsize=2)
    batches = iter(loader)
    assert len(list(batches)) == 2 and list(batches) == [] and len(list(loader)) == 2


def test_views_end_with_getobs():
    kept = []

    def getobs(place, seed, x):
        x.cast("f")[0] = place
        kept.append(x)

    batches = [b for (b,) in wb.DataLoader(np.zeros((1, 1), "f4"), getobs=getobs, numobs=4, batchsize=2)]
    same(batches[1], [[2], [3]])
    with pytest.raises(ValueError, match="released"):
        kept[0][0]


def test_map_returns_something():
    with pytest.raises(TypeError, match="map returned None"):
        list(wb.DataLoader(wb.ones((4, 1)), map=lambda x: None))


def test_long_names_and_greek_ones():
    class Named(wb.Module):
        pass

    m, name = Named(), "é" * 100
    setattr(m, name, wb.Parameter(wb.ones(1)))
    assert getattr(m, name).item() == 1
    m.β = wb.Parameter(wb.ones(1))
    m.β = m.β + 1
    m.γ = wb.State(wb.zeros(()))
    m.γ += 1
    assert m.β.item() == 2 and m.γ.item() == 1


def test_paths_and_bytes(tmp_path):
    m = wb.Dense(2, 3)
    for path in (tmp_path / "ü ☃.bson", str(tmp_path / "a.npz"), bytes(tmp_path / "b.bson")):
        wb.save(path, m)
        wb.load(path, wb.Dense(2, 3))
    assert wb.load_model(bytes(tmp_path / "b.bson")).parameters().keys() == {"weight", "bias"}
    with pytest.raises(ValueError, match="null"):
        wb.save("a\0b.bson", m)
    with pytest.raises(TypeError):
        wb.load(None, m)


def test_damaged_bytes():
    data = bytearray(wb.save_bytes(wb.Dense(2, 3)))
    for place in range(0, len(data), 7):
        damaged = data.copy()
        damaged[place] ^= 0xB5
        try:
            wb.load_bytes(bytes(damaged), wb.Dense(2, 3))
        except wb.Error:
            pass  # with a message that can be read


class Path:
    def __fspath__(self):
        gc.collect()
        return "".join(["wei", "ght"])


def test_a_path_that_makes_its_text():
    m = wb.Dense(2, 2)
    m[Path()] = wb.ones((2, 2))
    assert m["weight"].sum().item() == 4


def test_axes_that_are_not_there():
    x = wb.ones((2, 3))
    for f in (lambda: wb.squeeze(x, 7), lambda: wb.moveaxis(x, 0, 5), lambda: wb.unstack(wb.array(1)), lambda: wb.split(x, 0), lambda: wb.split(x, 1, axis=2)):
        with pytest.raises(ValueError):
            f()


def test_layers_take_arrays():
    for layer in (wb.Dense(2, 2), wb.Chain(wb.Dense(2, 2), lambda x: x)):
        for arguments in ((), (None,), (wb.ones((1, 2)), None)):
            with pytest.raises(TypeError, match="a layer takes"):
                layer(*arguments)


def test_top_k_by_axis():
    a = np.random.randn(4, 5).astype("f4")
    for axis in (0, 1, -1):
        values, places = wb.top_k(wb.array(a), 2, axis)
        same(values, -np.sort(-a, axis)[(slice(None),) * (axis % 2) + (slice(2),)])
        same(wb.take_along_axis(wb.array(a), places, axis), values)
    assert wb.top_k(wb.arange(5), 2)[1].tolist() == [4, 3]


def test_what_there_is_not_is_none():
    assert wb.loss_scale(wb.setup(wb.Adam(), wb.Dense(2, 2))) is None


def test_a_cifar_file(tmp_path):
    (tmp_path / "batch.bin").write_bytes(bytes([7]) + bytes(3072) + bytes([2]) + bytes([255]) * 3072)
    images, labels = wb.read_cifar(tmp_path / "batch.bin", 1)
    assert images.shape == (2, 3, 32, 32) and labels.tolist() == [7, 2] and images[1].sum().item() == 255 * 3072


def test_none_is_no_path():
    m = wb.Chain(wb.Dense(2, 2))
    with pytest.raises(TypeError, match="None"):
        m[None]
    with pytest.raises(TypeError, match="None"):
        m[None] = wb.ones(2)
    _, gradients = wb.withgradient(lambda m, x: m(x).sum(), m, wb.ones((1, 2)))
    with pytest.raises(TypeError, match="None"):
        gradients[None]
    with pytest.raises(TypeError, match="None"):
        gradients[None] = wb.ones(2)


def test_none_is_no_number_and_no_axis():
    x = wb.ones((2, 2))
    for f in (lambda: wb.clamp(x, None, 1), lambda: wb.sort(x, axis=None), lambda: wb.softmax(x, axis=None), lambda: wb.zeros(None)):
        with pytest.raises(TypeError):
            f()
    assert x.squeeze(None).shape == (2, 2)


def test_a_gradient_by_none():
    with pytest.raises(TypeError, match="argument 1 is None"):
        wb.gradient(lambda x, y: x.sum(), wb.ones(2), None)
    with pytest.raises(TypeError, match="not a model"):
        wb.jacobian(lambda m: m(wb.ones((1, 2))), wb.Dense(2, 2))


def test_more_arrays_than_are_taken():
    for f in (lambda *a: wb.recompute(lambda *b: b[0], *a), lambda *a: wb.function(lambda *b: b[0], lambda *c: None, *a)):
        with pytest.raises(ValueError, match="at most 64 arrays"):
            f(*[wb.ones(2)] * 65)


def test_an_index_with_more_axes_than_there_are():
    x, mask = wb.ones((1,) * 8), wb.array([True]).reshape((1,) * 8)
    with pytest.raises(IndexError, match="more than 8 axes"):
        x[(None,) * 20 + (mask,)]


def test_the_error_of_a_value_for_set():
    with pytest.raises(TypeError, match="str"):
        wb.ones(3).at[0].set("abc")


def test_layers_that_were_not_taken_are_released():
    class Owner(wb.Module):
        pass

    def cycle():
        m = Owner()
        m.inner = wb.Chain(m)

    makers = (lambda: wb.SkipConnection(wb.Dense(2, 3), "no such"), lambda: wb.Bidirectional(wb.RNN(2, 3), 5), cycle,
              lambda: wb.WeightNorm(wb.Dense(2, 3), which=5), lambda: wb.Chain(a=wb.Dense(2, 3), b=5), lambda: wb.tree(a=wb.Dense(2, 3), b="x"))
    for f in makers:
        before = wb.live()["objects"]
        for _ in range(5):
            with pytest.raises((TypeError, wb.Error)):
                f()
        gc.collect()
        wb.eval()
        assert wb.live()["objects"] <= before + 1, f


def test_a_sequence_keeps_its_schedules():
    parts = [[wb.schedule_constant(1.0), 2], [wb.schedule_constant(5.0), 2]]
    s = wb.schedule_sequence(parts)
    parts[0][0] = parts[1][0] = None
    gc.collect()
    assert [wb.schedule_at(s, t) for t in (1, 2, 3)] == [1, 1, 5]


def test_layers_are_true():
    assert wb.Dense(2, 3) and wb.Chain()


def test_infinity_is_close_to_itself_alone():
    inf = float("inf")
    assert wb.isclose(wb.array([1.0, inf, inf, -inf]), wb.array([inf, inf, 1.0, inf])).tolist() == [False, True, False, False]


def test_an_item_is_read_once():
    class Items:
        read = 0

        def __len__(self):
            return 3

        def __getitem__(self, place):
            Items.read += 1
            return (wb.ones(2),)

    assert len(list(wb.DataLoader(Items()))) == 3 and Items.read == 3


def test_settings_of_one_model_with_several_objects(tmp_path):
    m = wb.Dense(2, 2)
    wb.save(tmp_path / "m.bson", m, other=m)
    with pytest.raises(TypeError, match="partial"):
        wb.load(tmp_path / "m.bson", m, other=m, partial=True)


def test_buffers_of_other_orders():
    from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_ssize_t, c_void_p, py_object, pythonapi

    class Buffer(Structure):
        _fields_ = [("buf", c_void_p), ("obj", py_object), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int),
                    ("format", c_char_p), ("shape", POINTER(c_ssize_t)), ("strides", POINTER(c_ssize_t)), ("suboffsets", c_void_p), ("internal", c_void_p)]

    get, release = pythonapi.PyObject_GetBuffer, pythonapi.PyBuffer_Release
    get.argtypes, release.argtypes, release.restype = [py_object, POINTER(Buffer), c_int], [POINTER(Buffer)], None
    buffer, simple, fortran = Buffer(), 0, 0x58
    with pytest.raises(BufferError, match="fastest"):
        get(wb.ones((2, 3)), byref(buffer), fortran)
    assert get(wb.ones((2, 3)), byref(buffer), simple) == 0
    assert buffer.len == 24 and buffer.format is None and not buffer.shape and not buffer.strides
    release(byref(buffer))


def test_a_view_ends_while_another_thread_computes():
    import threading

    inside, ends = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        slow.in_time = ends.wait(20)
        return x.sum()

    view = memoryview(wb.ones(3))
    thread = threading.Thread(target=wb.gradient, args=(slow, wb.ones(2)))
    thread.start()
    assert inside.wait(20)
    view.release()
    ends.set()
    thread.join()
    assert slow.in_time


def test_what_users_of_pytorch_try_first():
    m = wb.Chain(wb.Dense(2, 1))
    for act, words in ((lambda: wb.Adam(m.parameters(), 1e-3), r"setup\(Adam"), (lambda: wb.Chain([wb.Dense(2, 3)]), r"Chain\(\*layers\)"),
                       (lambda: setattr(wb.setup(wb.Adam(), m), "lr", 0.1), r"adjust\(optimiser, 0.1\)"), (lambda: wb.setup(wb.Adam(), m).lr, "optimiser_setting"),
                       (lambda: wb.mse(wb.ones((5, 1)), wb.ones(5)), r"y\.reshape\(-1, 1\)")):
        with pytest.raises((TypeError, AttributeError, ValueError), match=words):
            act()
    wb.mse(wb.ones((5, 1)), wb.ones(5).reshape(-1, 1))
