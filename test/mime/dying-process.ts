/** A process that dies before it has read its input. */
process.exit(1);
