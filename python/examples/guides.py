"""What the GPU guides of Flux 0.11, 0.13 and 0.14 and of Lux 0.5 do, in Python: on a GPU where there is one, else on the CPU.

    python3 python/examples/guides.py             # each part by itself: arrays, models, training, saving, devices, trees
    weber run -n 2 python3 python/examples/guides.py distributed
"""
import os
import sys
import tempfile

import weber as wb


def arrays(device):
    """Flux 0.11 and 0.13, "GPU Usage": a linear model of arrays, and its gradient."""
    w, b = wb.to(wb.uniform((5, 2)), device), wb.uniform(2).to(device)
    x, y = wb.uniform((1, 5)).to(device), wb.uniform((1, 2)).to(device)

    def loss(w, b):
        return ((x @ w + b - y) ** 2).sum()

    for _ in range(100):
        grad_w, grad_b = wb.gradient(loss, w, b)
        w, b = w - 0.1 * grad_w, b - 0.1 * grad_b
    return loss(w, b).item()


class ActorCritic(wb.Module):
    """Flux 0.11, "@functor": what is in a struct of one's own is moved with it, without being listed."""

    def __init__(self):
        self.actor = wb.Dense(10, 5, wb.sigmoid)
        self.critic = wb.Parameter(wb.ones(5))

    def forward(self, x):
        return self.actor(x) * self.critic


def models(device):
    """Flux, "structured models": fmap, gpu, cpu."""
    m = wb.Chain(wb.Dense(10, 5, wb.sigmoid), wb.Dense(5, 2), wb.softmax)
    doubled = wb.map_model(lambda path, x: x * 2.0, m)  # fmap
    assert wb.allclose(doubled[0].weight, m[0].weight * 2.0)
    own = ActorCritic().to(device)
    assert own.critic.device == device
    x = wb.uniform((1, 10))
    on_device = wb.to(m, device)
    return wb.allclose(wb.to(on_device(x.to(device)), "CPU"), m(x), atol=1e-5) and own(x.to(device)).shape == (1, 5)


def training(device):
    """Flux 0.14, "Transferring Training Data": the loader moves each batch; or all data are there."""
    x = wb.normal((256, 2))
    y = (x[:, 0] * x[:, 1] > 0).astype("int32")
    model = wb.Chain(wb.Dense(2, 32, wb.relu), wb.Dense(32, 2)).to(device)
    optimiser = wb.setup(wb.Adam(0.01), model)
    for loader in (wb.DataLoader(x, y, batchsize=64, shuffle=True, device=device), wb.DataLoader(x.to(device), y.to(device), batchsize=32)):
        for epoch in range(30):
            for xs, ys in loader:
                loss, gradients = wb.withgradient(lambda m, x, y: wb.logitcrossentropy(m(x), y), model, xs, ys)
                wb.update(optimiser, model, gradients)
    return wb.evaluate(model, loader)["accuracy"], model


def saving(model, x):
    """Flux 0.14, "Saving GPU-Trained Models": files have no device, so nothing is moved by hand."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trained_model.bson")
        wb.save(path, model)
        return wb.allclose(wb.load_model(path)(x), wb.to(model, "CPU")(x), atol=1e-5)


def devices():
    """Flux 0.14, "Using device objects" and "Data movement"; Lux 0.5, "GPU Management"."""
    print("backends in order of preference:", wb.supported_devices(), "- the preference:", wb.gpu_backend())
    for backend in wb.supported_devices():
        why = "" if wb.loaded(backend) else wb.reason() or "not installed"
        print("  %-8s %s" % (backend, [str(d) for d in wb.devices(backend)] if wb.loaded(backend) else why.splitlines()[0]))
    device = wb.default_device()
    dense = wb.Dense(2, 3)
    with wb.device(device):  # what is made here is there
        there = wb.Dense(2, 3)
    moved = dense.to(device)
    assert there.weight.device == moved.weight.device == device
    x = wb.normal((2, 3))
    return wb.allclose(wb.to(wb.to(x, device), wb.cpu_device()), x)


def trees():
    """Lux: y, st = model(x, ps, st)."""
    model, x = wb.Chain(wb.Dense(3, 4, wb.tanh), wb.BatchNorm(4)), wb.normal((8, 3))
    ps, st = wb.parameter_tree(model), wb.state_tree(model)
    y, st = wb.apply_tree(model, x, ps, st)
    return wb.allclose(y, model(x))


def distributed():
    """Flux 0.14, "Distributed data parallel training"."""
    wb.distributed_initialize()
    model = wb.Chain(wb.Dense(1, 256, wb.tanh), wb.Dense(256, 1))
    wb.synchronize(model)  # all ranks begin with what rank 0 has
    x = wb.linspace(-1, 1, 64).reshape(-1, 1)
    data = wb.DataLoader(x, x**3, batchsize=16, shard=True)
    optimiser = wb.setup(wb.Adam(0.003), model, distributed=True)
    for epoch in range(60):
        for xs, ys in data:
            loss = wb.train_step(lambda m, x, y: wb.mse(m(x), y), model, optimiser, xs, ys)
    return wb.allreduce(loss, "mean").item()


def main():
    if sys.argv[1:] == ["distributed"]:
        print("rank %d of %d: loss %.5f" % (wb.rank(), wb.total_workers(), distributed()))
        return None
    wb.seed(3)
    device = wb.default_device()
    accuracy, model = training(device)
    found = {"loss": arrays(device), "models": models(device), "accuracy": accuracy, "saving": saving(model, wb.normal((4, 2))), "devices": devices(),
             "trees": trees(), "distributed": distributed()}
    print(found)
    return found


if __name__ == "__main__":
    main()
