from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.device_kinds import DeviceShape, name_by_shape
from htagraph.core.devices import PEAKS, is_amd, known_device
from tests.reach import SHARED
from tests.strategies import kernel, write

GIB = 2**30
MI300X = {"totalGlobalMem": 206_141_652_992, "computeMajor": 9, "computeMinor": 4, "warpSize": 64, "numSms": 304}


@pytest.mark.parametrize(
    ("shape", "product"),
    [
        (DeviceShape((9, 4), 304, 206_141_652_992, 64), "MI300X"),
        (DeviceShape((9, 4), 304, 255 * GIB, 64), "MI325X"),
        (DeviceShape((9, 4), 228, 128 * GIB, 64), "MI300A"),
        (DeviceShape((9, 0), 110, 64 * GIB - 2**20, 64), "MI250X"),
        (DeviceShape((9, 0), 104, 64 * GIB - 2**20, 64), ""),  # MI210, or a die of an MI250
        (DeviceShape((9, 5), 256, 288 * GIB, 64), ""),  # MI350X or MI355X
        (DeviceShape((9, 4), 38, 192 * GIB, 64), ""),  # a part of a device
        (DeviceShape((9, 4), 304, 200 * GIB, 64), ""),
        (DeviceShape((9, 0), 132, 80 * GIB, 32), ""),  # another maker's
    ],
)
def test_a_device_is_named_only_if_one_product_fits(shape: DeviceShape, product: str) -> None:
    assert known_device(name_by_shape(shape)) == product


def test_every_amd_product_with_peaks_has_a_shape() -> None:
    from htagraph.core.device_kinds import _SHAPES

    assert {product for product in PEAKS if is_amd(product)} <= {product for product, *_ in _SHAPES}


@pytest.mark.parametrize("lacks", [*MI300X, ""])
def test_a_header_without_a_name_and_without_one_of_the_facts(lacks: str, tmp_path: Path) -> None:
    path = write([kernel("gemm", 0, 5)], tmp_path / "a.json")
    properties = {"id": 0, "name": "", **MI300X}
    properties.pop(lacks, None)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"deviceProperties": [properties]}))
    (device,) = hg.load(path).traces[0].facts.devices
    assert known_device(device.name) == ("" if lacks else "MI300X")


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs shared traces")
def test_an_amd_recording_that_has_its_name_confirms_the_table() -> None:
    path = SHARED / "tracelens" / "mi300_resnet_act_checkpoint.json.gz"
    named = json.loads(gzip.decompress(path.read_bytes()))["deviceProperties"][0]
    shape = DeviceShape(
        (named["computeMajor"], named["computeMinor"]), named["numSms"], named["totalGlobalMem"], named["warpSize"]
    )
    assert known_device(name_by_shape(shape)) == known_device(named["name"]) == "MI300X"
    inputs = hg.summarize(hg.load(SHARED / "tracelens" / "mi300_vllm_decode_graphs.json.gz")).inputs
    assert inputs["device"].tolist() == ["MI300X (304 units, 192 GiB)"]
