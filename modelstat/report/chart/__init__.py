"""What every chart is drawn from: points, roofs, the tree and memory over time, as frozen records without a drawing library."""
