"""State of a job that outlives the job: exported to files, imported into another job, signed with another secret."""

from elastic.portable.exporting import Exported, export_state
from elastic.portable.importing import Imported, import_state, import_table
from elastic.portable.resigning import resign

__all__ = ["Exported", "Imported", "export_state", "import_state", "import_table", "resign"]
