//! Names and texts of guests that reach people and files.
