"""An application: classification of encrypted digits under a joint CKKS key (``make cnn``). ``model``: the network in clear;
``packing``: the slots of its numbers; ``encrypted``: the network on ciphertexts, by SEAL; ``run``: all phases together."""
