#!/usr/bin/env python3
"""peer_resnet.py [EPOCHS [IMAGES [SEED]]]: examples/20_resnet.c in torch, on one thread: the same network,
initialisers, batches of 32, Adam with a rate of 2e-3, Fashion-MNIST scaled alike, 10,000 images held out."""
import gzip
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

BATCH = 32
FOLDER = os.environ.get("WEBER_DATA", "/usr/share/datasets/fashion-mnist")


def idx(name, header):
    with gzip.open(os.path.join(FOLDER, name)) as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def split(name, most):
    x = idx(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    return x[:most], idx(f"{name}-labels-idx1-ubyte.gz", 8)[:most].long()


def numbers(x):
    return x.float() / 90 - 0.8


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.around = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(x + self.around(x))


def halve(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def resnet():
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Block(16), *halve(16, 32), Block(32),
        *halve(32, 64), Block(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(model[-1].bias)
    return model


def train(model, adam, x, y):
    model.train()
    for order in torch.randperm(len(x)).split(BATCH):
        adam.zero_grad()
        F.cross_entropy(model(numbers(x[order])), y[order]).backward()
        adam.step()


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(numbers(part)) for part in x.split(500)])
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    epochs, images, seed = (int(value) for value in (sys.argv[1:] + ["3", "60000", "1"][len(sys.argv) - 1:])[:3])
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    (x, y), held_out = split("train", images), split("t10k", 10000)
    model = resnet()
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"torch {torch.__version__}, {sum(p.numel() for p in model.parameters())} parameters, seed {seed}", flush=True)
    for epoch in range(1, epochs + 1):
        train(model, adam, x, y)
        loss, accuracy = evaluate(model, *held_out)
        print(f"epoch {epoch}: test loss {loss:.4f}, accuracy {100 * accuracy:.2f}%", flush=True)


if __name__ == "__main__":
    main()
