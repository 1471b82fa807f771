"""Ingest of rows: senders split, log and upload every source partition; the driver commits the batch."""
