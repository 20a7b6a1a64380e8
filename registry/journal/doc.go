// Package journal keeps on disk what must outlive the daemon: the rows of
// [registry.Journal], the notices of the event hub and a few settings. It stores
// rows by key and knows nothing of what they mean.
//
// # Order and durability
//
// Changes are put in line under one short mutex and never touch the disk there.
// One goroutine takes everything that is in line and writes it as one
// transaction; of several changes of one key only the newest is written. So what
// is on disk is always the state after some whole call: no call is ever half
// written, and none overtakes another, rows and notices alike.
//
// A mark that [Journal.Sync] confirmed survives the end of the process at any
// instant. It survives the end of the machine if the journal was opened with
// Full, and otherwise if it is older than the last checkpoint, which comes five
// seconds after the last write at the latest.
//
// # Trouble
//
// When writing fails, [Journal.Sync] and [Journal.Check] say so at once with the
// system's reason. Changes stay in line, one per key: their memory is bounded by
// the keys that change meanwhile, and those who begin new ones ask Check before.
// The writer tries again by itself, at most five seconds later, and when poked.
//
// 1 MiB of space is kept in a file beside the journal. When the disk is full it is
// given to the write-ahead log: ends and kills are still written then, but Check
// refuses until the reserve is whole again.
//
// # Damage
//
// A journal that is damaged is refused with a [DamageError] and left as it is, and so is
// one whose write-ahead log has frames behind a bad one, which SQLite would drop in
// silence. Only a log that ends in the middle of a transaction is as a sudden
// end leaves it. [AcceptLoss] goes on without what is lost.
//
// # Files
//
// The journal is one SQLite database in WAL mode, locked by its process for as
// long as it is open, with a write-ahead log (-wal) and the reserve (-reserve)
// beside it. All have mode 0600, and links are refused.
package journal
