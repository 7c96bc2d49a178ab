"""The jobs that `record_gpu_demo` records: a small transformer that is trained, and one that makes tokens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

__all__ = ["SMALL", "Generation", "Sizes", "Training", "synchronize"]


@dataclass(frozen=True)
class Sizes:
    """How large the model and its batches are: small enough for small files, large enough that the GPU has work."""

    vocabulary: int = 4096
    hidden: int = 1024
    heads: int = 16
    layers: int = 2
    tokens: int = 512
    batch: int = 16
    loader_ms: float = 12.0


SMALL = Sizes(vocabulary=64, hidden=32, heads=2, tokens=16, batch=2, loader_ms=2.0)
"""To try the script on a CPU."""


class Block(nn.Module):
    """Attention and a feed-forward network, each added to what comes in."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.before_attention = nn.LayerNorm(sizes.hidden)
        self.qkv = nn.Linear(sizes.hidden, 3 * sizes.hidden)
        self.out = nn.Linear(sizes.hidden, sizes.hidden)
        self.before_network = nn.LayerNorm(sizes.hidden)
        self.network = nn.Sequential(
            nn.Linear(sizes.hidden, 4 * sizes.hidden), nn.GELU(), nn.Linear(4 * sizes.hidden, sizes.hidden)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x after the block."""
        batch, tokens, hidden = x.shape
        parts = self.qkv(self.before_attention(x)).view(batch, tokens, 3, self.heads, hidden // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=tokens > 1)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, hidden))
        return x + self.network(self.before_network(x))


class LanguageModel(nn.Module):
    """A transformer that predicts a token at each position."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.head = nn.Linear(sizes.hidden, sizes.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of each next token."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Texts(Dataset[torch.Tensor]):
    """Random texts; a slow one computes on the host for a while per batch, as decoding or tokenizing does."""

    def __init__(self, sizes: Sizes, ms: float) -> None:
        self.sizes, self.ms = sizes, ms
        self.made = torch.randint(sizes.vocabulary, (64, sizes.batch, sizes.tokens + 1))

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        """Return one batch."""
        until = time.perf_counter() + self.ms / 1000
        while time.perf_counter() < until:
            sum(range(100))
        return self.made[index % len(self.made)]


class Training:
    """A training loop with two faults, each of which can be absent."""

    def __init__(self, sizes: Sizes, device: str, *, slow_loader: bool = False, item: bool = False) -> None:
        torch.manual_seed(0)
        self.device, self.item = device, item
        self.model: Callable[[torch.Tensor], torch.Tensor] = LanguageModel(sizes).to(device, torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, foreach=True)  # type: ignore[attr-defined]
        texts = Texts(sizes, sizes.loader_ms)
        pinned = device == "cuda"
        beside: dict[str, Any] = {} if slow_loader else {"num_workers": min(4, os.cpu_count() or 1)}
        self.batches = iter(DataLoader(texts, batch_size=None, pin_memory=pinned and not slow_loader, **beside))
        self.losses: list[Any] = []

    def step(self) -> None:
        """Run one step."""
        text = next(self.batches).to(self.device, non_blocking=True)
        with record_function("forward"):
            logits = self.model(text[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.losses = [loss.item() if self.item else loss.detach()]


class Generation:
    """One request at a time: a prompt, then tokens one by one, kernel by kernel or as one CUDA graph."""

    def __init__(self, sizes: Sizes, device: str) -> None:
        torch.manual_seed(0)
        self.sizes = sizes
        self.model = LanguageModel(sizes).to(device, torch.bfloat16).eval()
        self.prompt = torch.randint(sizes.vocabulary, (1, sizes.tokens), device=device)
        self.last = torch.zeros((8, 1), dtype=torch.long, device=device)
        self.replay = self.token
        if device == "cuda":
            self.replay = self._captured().replay

    @torch.no_grad()
    def token(self) -> None:
        """Make one more token for each of eight texts; each sees its last token only, as launches are the point."""
        self.last.copy_(self.model(self.last).argmax(-1))

    def _captured(self) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.token()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.token()
        return graph

    @torch.no_grad()
    def step(self) -> None:
        """Answer one request."""
        with record_function(f"prefill toks={self.sizes.tokens}"):
            self.model(self.prompt)
        synchronize()
        for name, make in (("decode_eager", self.token), ("decode_graph", self.replay)):
            for _ in range(3):
                with record_function(f"{name} toks=8"):
                    make()
            synchronize()


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
