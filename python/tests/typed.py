"""A program that mypy --strict accepts (scripts/check_python)."""
import weber as wb

class Block(wb.Module):
    def __init__(self, n: int) -> None:
        self.dense = wb.Dense(n, n)
        self.scale = wb.Parameter(wb.ones(n))
        self.calls = wb.State(wb.zeros(()))
        self.blocks = [wb.Dense(n, n) for _ in range(3)]
        self.heads = {"left": wb.Dense(n, 1)}

    def forward(self, x: wb.Array) -> wb.Array:
        y: wb.Array = self.dense(x) * self.scale[0] + self.calls
        for block in self.blocks:
            y = block(y)
        return y * self.scale.sum()

model = wb.Chain(wb.Dense(2, 3, wb.tanh), wb.BatchNorm(3), wb.Dense(3, 2))
optimiser = wb.setup(wb.Adam(0.01), model)
x = wb.uniform((1000, 2))
y = ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).astype("int32")
def loss(m: wb.Layer, xs: wb.Array, ys: wb.Array) -> wb.Array:
    return wb.logitcrossentropy(m(xs), ys)
for xs, ys in wb.DataLoader(x, y, batchsize=64, shuffle=True):
    l = wb.train_step(loss, model, optimiser, xs, ys)
print(l.item(), x.sum(axis=0).max())
