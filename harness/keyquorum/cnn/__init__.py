"""An application: classification of encrypted digits under a joint CKKS key (``make cnn``). ``model``: the network in clear;
``packing``: the slots of its numbers; ``weights``: its weights in clear or encrypted; ``network``: the circuit on packed ciphertexts; ``encrypted``:
the circuit by SEAL; ``noise``, ``counts``: its noise, and its operations; ``run``: all phases together."""
