import { defineSearchAttributeKey } from '@temporalio/common';

/** Who took an email. */
export const PROVIDER = defineSearchAttributeKey('Provider', 'KEYWORD');
