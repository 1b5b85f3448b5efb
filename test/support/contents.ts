import { makeEmailContents } from '../../src/store/emails/contents.ts';
import { SECRET_KEY } from './secret-key.ts';

/** Seals and opens the content of messages with the secret key of the tests. */
export const contents = makeEmailContents(SECRET_KEY);
