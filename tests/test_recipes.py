"""The recipes of docs/recording.md as they are printed, on one and two ranks; skipped where a library is absent."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import htagraph as hg
from tests.reach import REPOSITORY
from tests.trace.recording.torch_python import needs_torch, run_with_torch

PAGE = REPOSITORY / "docs" / "recording.md"
_MODEL = """
import os
import torch
from torch import nn

torch.set_num_threads(1)
if "WORLD_SIZE" in os.environ:
    torch.distributed.init_process_group("gloo")
linear = nn.Linear(8, 8)
model = nn.parallel.DistributedDataParallel(linear) if torch.distributed.is_initialized() else linear
optimizer = torch.optim.SGD(model.parameters())
loader = [torch.randn(4, 8) for _ in range(10)]


def train(batch):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()

"""
_LIGHTNING = """
import torch
from torch import nn
import htagraph as hg
import lightning


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def training_step(self, batch, _):
        return self.linear(batch).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters())

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(100, 8), batch_size=4)

model = Model()
"""
_TRANSFORMERS = """
import torch
import htagraph as hg
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

model = LlamaForCausalLM(LlamaConfig(
    hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
    vocab_size=8,
))
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(100)]
args = TrainingArguments(output_dir="out", max_steps=10, use_cpu=True, report_to=[], save_strategy="no")
"""
_LOOP = """
with profiler:
    for batch in loader:
        train(batch)
        profiler.step()
"""
_END = """
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
"""
RECIPES = {  # the block of code that has these words; what is before it, what is after it, and the library
    "loop": ("for batch in loader", _MODEL, _END, "torch"),
    "by hand": ("on_trace_ready", _MODEL, _LOOP + _END, "torch"),
    "Lightning": ("import lightning", _LIGHTNING, "", "lightning"),
    "Trainer": ("import Trainer", _TRANSFORMERS, "", "transformers"),
}


@cache
def is_there(library: str) -> bool:
    try:
        run_with_torch(Path("-c"), f"import importlib.util, sys; sys.exit(not importlib.util.find_spec({library!r}))")
    except AssertionError:
        return False
    return True


@needs_torch
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_records_its_steps_on_every_rank(
    recipe: str, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, before, after, library = RECIPES[recipe]
    if not is_there(library):
        pytest.skip(f"needs {library}")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (printed,) = [block for block in blocks if words in block]
    script = tmp_path / "train.py"
    if ranks > 1:  # Lightning counts GPUs, of which there are none
        printed = printed.replace("max_steps=10", f'max_steps=10, devices={ranks}, strategy="ddp"')
    script.write_text(before + printed + after)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    if ranks == 1:
        run_with_torch(script)
    else:
        several = ("torch.distributed.run", f"--nproc-per-node={ranks}", "--standalone", "--local-addr=127.0.0.1")
        run_with_torch(Path("-m"), *several, str(script))
    graph = hg.load("traces")
    graph.check()
    assert graph.ranks == tuple(range(ranks))
    assert graph.steps == (3, 4, 5)
    collectives = hg.collectives(graph)
    assert collectives["matched"].all()
    assert set(collectives["rank"]) == set(range(ranks) if ranks > 1 else [])
