"""A user's program: seal-python of any version alone, on the files of an exported key. Run as a process of its own: FOLDER STEP of the files, or a plaintext to decode."""

import sys
from pathlib import Path

import numpy as np
import seal

folder, done = Path(sys.argv[1]), {}
parms = seal.EncryptionParameters(seal.scheme_type.bfv)
parms.load_bytes((folder / "parms").read_bytes())
context = seal.SEALContext(parms, True, seal.sec_level_type.none)
assert context.parameters_set()
ckks = parms.scheme() == seal.scheme_type.ckks
encoder = seal.CKKSEncoder(context) if ckks else seal.BatchEncoder(context)

if sys.argv[2] == "decode":
    plain = context.from_plain_str((folder / "plain").read_bytes())
    np.save(folder / "values.npy", encoder.decode(plain))
    raise SystemExit

values = np.arange(1, 9)
plain = encoder.encode(values.astype(float), 2.0**40) if ckks else encoder.encode(values)
evaluator = seal.Evaluator(context)
encrypted = seal.Encryptor(context, context.from_public_str((folder / "public.key").read_bytes())).encrypt(plain)
if (folder / "encrypted").exists():  # by KeyQuorum
    encrypted = context.from_cipher_str((folder / "encrypted").read_bytes())
squared = evaluator.relinearize(evaluator.square(encrypted), context.from_relin_str((folder / "relin.key").read_bytes()))
if ckks:
    squared = evaluator.rescale_to_next(squared)
rotate = evaluator.rotate_vector if ckks else evaluator.rotate_rows
rotated = rotate(squared, 1, context.from_galois_str((folder / "galois.key").read_bytes()))
(folder / "computed").write_bytes(rotated.to_string())
print(seal.__version__)
