/** Something that whoever typed the command can put right; the message says how, and no stack is printed. */
export class Problem extends Error {}
