"""The page of `lcv demo`: frames in, flow of several networks beside each other, on this machine only."""
