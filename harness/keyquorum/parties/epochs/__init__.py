"""Epochs of a party: files, statements, and its part in a change (:class:`Change`)."""

from .change import Change
from .record import EPOCH_FILE, JOURNAL, RECORDS, Epoch, Record, committee_json, read_epoch, shares_folder, shares_name

__all__ = ["EPOCH_FILE", "JOURNAL", "RECORDS", "Change", "Epoch", "Record", "committee_json", "read_epoch", "shares_folder", "shares_name"]
