import { defineSearchAttributeKey } from '@temporalio/common';

/** The provider that was last called for a message, or for all emails in the last round of a group. */
export const PROVIDER = defineSearchAttributeKey('Provider', 'KEYWORD');
