import { provided } from './provided.ts';

/**
 * The working directory for programs of the service. They read `.env` and the default `SENDWRIGHT_HOME` of their working directory,
 * and those in the project's folder are the developer's own.
 */
export const WITHOUT_ENV_FILE = provided('TEST_COMPILED');
