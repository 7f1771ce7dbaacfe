"""The audit log of a party: its lines (:mod:`.log`), their chain (:mod:`.chain`), and its verification (:mod:`.verify`)."""
