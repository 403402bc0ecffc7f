"""A table with categories and gaps: prices of flats, made up: python tabular.py [EPOCHS]. Needs pandas.

Each category has a vector that is learned; numbers are scaled; a gap is a zero and a mark beside it.
"""
import sys

import numpy as np
import pandas as pd

import weber as wb

CATEGORIES, NUMBERS = ["district", "kind"], ["area", "floor"]


def flats(n):
    r = np.random.default_rng(1)
    frame = pd.DataFrame({
        "district": r.choice(["harbour", "hill", "mill", "station", "wood"], n), "kind": r.choice(["flat", "house", "studio"], n),
        "area": r.uniform(20, 150, n), "floor": r.integers(0, 9, n).astype(float)})
    a_metre = frame["district"].map({"harbour": 9, "hill": 7, "mill": 5, "station": 3, "wood": 4}.get) + frame["kind"].map({"flat": 0, "house": 2, "studio": 1}.get)
    frame["price"] = a_metre * frame["area"] + 5 * frame["floor"] + r.normal(0, 10, n)
    frame.loc[r.random(n) < 0.1, "floor"] = np.nan
    return frame.astype({name: "category" for name in CATEGORIES})


class Table(wb.Module):
    def __init__(self, counts, numbers, width=4):
        self.vectors = {name: wb.Embedding(count, width) for name, count in counts.items()}  # one for each category
        self.net = wb.Chain(wb.Dense(width * len(counts) + numbers, 64, wb.relu), wb.Dense(64, 64, wb.relu), wb.Dense(64, 1))

    def forward(self, numbers, codes):
        vectors = [table(codes[:, i]) for i, table in enumerate(self.vectors.values())]
        return self.net(wb.concat([*vectors, numbers], axis=-1))[:, 0]


def main():
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    wb.seed(1)
    frame = flats(4000)
    train = frame.iloc[:3200]
    mean, std = train[NUMBERS].mean(), train[NUMBERS].std()
    scaled = (frame[NUMBERS] - mean) / std
    numbers = wb.array(np.c_[scaled.fillna(0.0), scaled.isna()].astype("float32"))
    codes = wb.array(np.stack([frame[name].cat.codes for name in CATEGORIES], axis=1).astype("int32"))
    price = wb.from_arrow(frame["price"]).astype("float32")  # the memory of pandas, without a copy
    center, scale = price[:3200].mean().item(), price[:3200].std().item()
    goal = (price - center) / scale

    model = Table({name: len(frame[name].cat.categories) for name in CATEGORIES}, numbers.shape[1])
    optimiser = wb.setup(wb.AdamW(3e-3, lambda_=1e-4), model)
    for epoch in range(epochs):
        for x, c, y in wb.DataLoader(numbers[:3200], codes[:3200], goal[:3200], batchsize=64, shuffle=True, seed=epoch):
            wb.train_step(lambda m, x, c, y: wb.mse(m(x, c), y), model, optimiser, x, c, y)
    error = ((model(numbers[3200:], codes[3200:]) - goal[3200:]) ** 2).mean().item() / goal[3200:].var().item()
    print("of the variance of prices that were not seen, %.1f %% is explained" % (100 * (1 - error)))
    print(pd.DataFrame(np.asarray(model.vectors["district"].weight), index=frame["district"].cat.categories).round(2))
    return 1 - error


if __name__ == "__main__":
    main()
