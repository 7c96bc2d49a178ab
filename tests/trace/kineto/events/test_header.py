from __future__ import annotations

import pytest
from pydantic import ValidationError

from htagraph.trace.kineto.events import Header


def test_header_of_an_on_demand_trace() -> None:
    groups = [{"pg_name": "0", "pg_size": 64, "ranks": "[0, 1, ..., 63]"}, {"pg_name": "1", "ranks": [4, 5]}]
    raw = {
        "deviceProperties": [{"id": 0, "totalGlobalMem": 85, "numSms": 132, "brandNew": 1}],
        "distributedInfo": {"rank": 3, "pg_config": groups},
        "baseTimeNanoseconds": 1790857026000000000,
        "with_stack": 1,
        "roctracer_version": 4.1,
        "rocprofiler-sdk_version": "1.0.0",
        "PT_PROFILER_JOB_ATTEMPT_INDEX": 2,
        "mine": {"a": 1},
    }
    header = Header.model_validate(raw)
    assert header.distributed_info is not None
    assert [group.members for group in header.distributed_info.pg_config] == [list(range(64)), [4, 5]]
    assert (header.device_properties[0].num_sms, header.device_properties[0].model_extra) == (132, {"brandNew": 1})
    assert (header.with_stack, header.roctracer_version, header.job_attempt_index) == (True, 4.1, "2")
    assert header.model_extra == {"mine": {"a": 1}}
    assert Header.model_validate(header.model_dump(by_alias=True)) == header


def test_every_key_of_the_header_is_optional() -> None:
    header = Header.model_validate({})
    assert header.distributed_info is None
    assert header.device_properties == []


def test_a_header_key_of_another_type_is_named() -> None:
    with pytest.raises(ValidationError, match="distributedInfo"):
        Header.model_validate({"distributedInfo": "rank 3"})
