"""An application: classification of encrypted digits under a joint CKKS key (``make cnn``). ``model``: the network in clear;
``packing``: where its numbers stand in ciphertexts; ``encrypted``: the network on ciphertexts, by SEAL; ``run``: all of it."""
