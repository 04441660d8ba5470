// What a violation may be excused by, one word a cause: sums tell how often each was, and docs/safety.md of what it rests on and why
// nobody who was there could tell.
export const excuseReasons = [
  // Harm.
  'a lie told twice', 'an image resumed', 'a false oath', 'a watchdog that did not fire', 'a forged word of a crash kernel', 'one feed of two astray', 'a cable changed after a drill', 'a port astray',
  'freed by another', 'a Node deleted under its pods',
  // A machine that was well, and was ordered off.
  'a cable changed under an order', 'an outlet of a changed cable',
  // A machine left dark, or without a feed or its port.
  'a Node deleted under its fence', 'a NodeFence deleted', 'a machine exchanged', 'a cable changed and changed back', 'an outlet that called itself on',
] as const

export type ExcuseReason = (typeof excuseReasons)[number]
