"""Sets of TFHE and FHEW come from files of params/, and are those that key folders of earlier builds have."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from keyquorum.fhe.lwe_sets import FHEW_SETS, LWE_SETS, SECURITY, TFHE_SETS, FhewParameters, TfheParameters, read_set
from keyquorum.model.errors import ParameterError
from keyquorum.schemes import load_parameters, scheme_named
from keyquorum.schemes.fhew.key import FHEW_KEYS
from keyquorum.schemes.tfhe.key import TFHE_KEYS

# as key.json of the first builds with such keys has them
TFHERS = {
    "name": "tfhers-2-2", "dimension": 2048, "prime": 0, "plain_bits": 4, "padding_bits": 1, "deviation": 75674.45448432384, "noise_bits": 53,
    "source": "TFHE-rs 1.8: PARAM_MESSAGE_2_CARRY_2_KS_PBS; noise: 13 deviations (2^49.3) of an evaluated ciphertext", "scheme": "tfhe",
    "lwe_dimension": 918, "pbs_base_log": 23, "pbs_level": 1, "ks_base_log": 4, "ks_level": 4, "carry_bits": 2, "lwe_noise": 45, "glwe_noise": 17,
}  # fmt: skip
AJAX = {
    "name": "ajax53", "dimension": 2048, "prime": 9007199254614017, "plain_bits": 4, "padding_bits": 0, "deviation": 838.6686592451157, "noise_bits": 23,
    "source": "Ajax (ePrint 2025/1834), sections 4.1.3, 4.3 and 5.1, appendix B, table 2; noise: 13 deviations (2^19.1) of an evaluated ciphertext. "
    "Security, by our estimate alone (the primal attack): about 2^132 for the ring, 2^128 for n = 1024; the paper states 2^131", "scheme": "fhew",
    "lwe_dimension": 1024, "base_log": 6, "levels": 8, "switch_base_log": 1, "switch_levels": 52, "samples": 108544, "variance": 12.96,
    "switch_deviation": 228170137.6,
}  # fmt: skip
COMMON: dict[str, Any] = {"key_id": "ab" * 16, "parties": 3, "threshold": 1, "transcript": "cd" * 32}


def test_metadata_of_earlier_builds_are_read() -> None:
    tfhe = {**COMMON, "protocol": "rep-field", "parameters": TFHERS, "files": dict.fromkeys(TFHE_KEYS.files.names, "ef" * 32)}
    fhew = {**COMMON, "protocol": "shamir", "noise": "local", "parameters": AJAX, "files": dict.fromkeys(FHEW_KEYS.files.names, "ef" * 32)}
    # parties compare a digest of the metadata, so not a byte may be another
    assert TFHE_KEYS.from_json(tfhe).to_json() == tfhe and FHEW_KEYS.from_json(fhew).to_json() == fhew
    other = {**tfhe, "parameters": {**TFHERS, "source": "reworded"}}
    assert TFHE_KEYS.from_json(other).parameters is TFHE_SETS["tfhers-2-2"]
    for wrong in ({**TFHERS, "lwe_noise": 44}, {**TFHERS, "more": 1}, {**TFHERS, "source": 3}, {k: v for k, v in TFHERS.items() if k != "source"}):
        with pytest.raises(ParameterError, match="is not that of this version"):
            TFHE_KEYS.from_json({**tfhe, "parameters": wrong})


def test_sets_have_names_of_their_own_and_an_estimate() -> None:
    assert asdict(TFHE_SETS["tfhers-2-2"]) == TFHERS and asdict(FHEW_SETS["ajax53"]) == AJAX
    assert not set(TFHE_SETS) & (set(LWE_SETS) | set(FHEW_SETS)) and set(SECURITY) == {*TFHE_SETS, *FHEW_SETS}
    assert scheme_named("tfhe").texts.parameter_set(TFHE_SETS["tfhers-2-2"])[1]["security"] == {"short": 145, "ring": 141}
    assert scheme_named("fhew").texts.parameter_set(FHEW_SETS["ajax53"])[1]["security"] == {"short": 128, "ring": 132}


def test_a_file_has_the_fields_of_a_set() -> None:
    good: dict[str, Any] = {k: v for k, v in TFHERS.items() if k != "deviation"} | {"security": {"short": 1, "ring": 2}}
    assert read_set(good, lambda _: 7.0, TfheParameters)[0].deviation == 7.0
    for wrong in (
        {**good, "more": 1},
        {k: v for k, v in good.items() if k != "lwe_noise"},
        {**good, "security": {"short": 1}},
        {**good, "security": 1},
    ):
        with pytest.raises(ParameterError, match=r"params/tfhers-2-2\.toml has other fields than a set: restore the file"):
            read_set(wrong, lambda _: 7.0, TfheParameters)
    with pytest.raises(ParameterError, match="other fields than a set"):
        read_set(good, lambda p: float(p["variance"]), FhewParameters)


@pytest.mark.parametrize("name", ["tfhers-2-2", "ajax53"])
def test_a_file_is_the_shipped_set_or_refused(name: str, tmp_path: Path) -> None:
    """A file of params/ names its set; one with another number is none."""
    text = (Path(__file__).resolve().parents[2] / "params" / f"{name}.toml").read_text(encoding="utf-8")
    (tmp_path / "set.toml").write_text(text, encoding="utf-8")
    assert load_parameters(tmp_path / "set.toml") == load_parameters(name)
    (tmp_path / "set.toml").write_text(re.sub(r"^plain_bits = 4", "plain_bits = 3", text, flags=re.MULTILINE), encoding="utf-8")
    with pytest.raises(ParameterError, match=f"is not the set {name} of this version"):
        load_parameters(tmp_path / "set.toml")
