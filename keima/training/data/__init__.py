"""Game stores: records imported, kept, sampled and made into batches."""

import keima.games.rows  # noqa: F401  first, for it says what to install where pyarrow is missing
