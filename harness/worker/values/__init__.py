"""Values to wire trees and raw bytes, and back."""
