"""Models that are trained at several batches on one core: a convolutional network and an encoder of a transformer."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.recorded.job import Job

CLASSES = 40


class Residual(nn.Module):
    """Two convolutions with normalization beside a shortcut; `stride` halves the image."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: D102 - torch's
        return torch.relu(self.second(self.first(x)) + self.shortcut(x))


def convolutional(job: Job) -> None:
    """Train a small residual network on images of 32 x 32, with momentum."""
    widths = [(3, 16, 1), (16, 32, 2), (32, 64, 2)]
    net = nn.Sequential(*[Residual(*each) for each in widths], nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = nn.Sequential(net, nn.Linear(64, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    images, labels = torch.rand(job["batch"], 3, 32, 32), torch.randint(0, CLASSES, (job["batch"],))
    for _ in job.steps():
        cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def encoder(job: Job) -> None:
    """Train an encoder of two layers on sequences of 48 tokens, averaged and classified, with AdamW."""
    width = 128
    layer = nn.TransformerEncoderLayer(width, 4, 384, dropout=0.0, activation="gelu", batch_first=True)
    layers, head = nn.TransformerEncoder(layer, 2), nn.Linear(width, CLASSES)
    embedding = nn.Embedding(2_000, width)
    parameters = [each for part in (embedding, layers, head) for each in part.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5)
    tokens, labels = torch.randint(0, 2_000, (job["batch"], 48)), torch.randint(0, CLASSES, (job["batch"],))
    for _ in job.steps():
        made = layers(embedding(tokens))
        cross_entropy(head(made.mean(1)), labels).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
