"""The way in: from a payload to the commit, and afterwards when settings or the clock change."""
