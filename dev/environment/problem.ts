/** An error that the user can correct. The message states how, and no stack is printed. */
export class Problem extends Error {}
