"""Files → Trace: discovery of ranks, decompression, bulk decoding, repair of broken JSON."""
