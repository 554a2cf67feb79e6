"""Codecs of the requests that a broker serves most: requests in, responses out.

Written by `python -m codegen.hot`. Here mypyc can compile them; `codec` makes all others at their
first use.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.types import Buffer
from penstock.wire.decoder import line_fields
from penstock.wire.encoder import UnencodableError
from penstock.wire.messages.fetch import EpochEndOffset, FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic, LeaderIdAndEpoch as LeaderIdAndEpoch_19, LeaderIdAndEpoch as LeaderIdAndEpoch_22, ReplicaState, SnapshotId
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.messages.produce import LeaderIdAndEpoch, PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from penstock.wire.primitives import MALFORMED, MalformedError, check_tags, malformed, packer, repeated, skip_tags, unpacker, uvarint, uvarint_bytes, uvarint_rest

unpack_hiB: Final = unpacker('hiB')
unpack_iB: Final = unpacker('iB')
pack_ihqqqB: Final = packer('ihqqqB')
pack_ihqqq: Final = packer('ihqqq')
pack_iB: Final = packer('iB')
pack_i: Final = packer('i')
pack_ix: Final = packer('ix')
DEFAULT_current_leader: Final = LeaderIdAndEpoch()
pack_iix: Final = packer('iix')
unpack_16sB: Final = unpacker('16sB')
pack_16sB: Final = packer('16sB')
pack_16s: Final = packer('16s')
unpack_iiiibiiB: Final = unpacker('iiiibiiB')
unpack_iiqiqiB: Final = unpacker('iiqiqiB')
DEFAULT_cluster_id: Final = None
pack_ihiB: Final = packer('ihiB')
pack_ihi: Final = packer('ihi')
pack_qqx: Final = packer('qqx')
DEFAULT_diverging_epoch: Final = EpochEndOffset()
DEFAULT_current_leader_23: Final = LeaderIdAndEpoch_22()
DEFAULT_snapshot_id: Final = SnapshotId()
pack_iqx: Final = packer('iqx')
pack_qix: Final = packer('qix')
DEFAULT_current_leader_20: Final = LeaderIdAndEpoch_19()
unpack_iiibiiB: Final = unpacker('iiibiiB')
DEFAULT_replica_state: Final = ReplicaState()
unpack_iqB: Final = unpacker('iqB')
DEFAULT_replica_directory_id: Final = b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00'
unpack_16s: Final = unpacker('16s')
DEFAULT_high_watermark: Final = 9223372036854775807
unpack_q: Final = unpacker('q')
unpack_ooB: Final = unpacker('??B')
pack_hB: Final = packer('hB')
pack_h: Final = packer('h')
pack_16soB: Final = packer('16s?B')
pack_16so: Final = packer('16s?')
pack_hiiiB: Final = packer('hiiiB')
pack_hiii: Final = packer('hiii')
pack_hx: Final = packer('hx')


def decode_ProduceRequest_9(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        transactional_id_1: int
        transactional_id_1 = buf[pos]
        pos += 1
        if transactional_id_1 > 127:
            transactional_id_1, pos = uvarint_rest(buf, pos, transactional_id_1)
            if transactional_id_1 > 32768:
                raise MalformedError(f"impossible length {transactional_id_1 - 1}")
        transactional_id_1 -= 1
        transactional_id_2: Any
        if transactional_id_1 == -1:
            transactional_id_2 = None
        else:
            at_3 = pos
            pos += transactional_id_1
            if transactional_id_1 < 0 or pos > end:
                pos = at_3
                raise MalformedError(f"impossible length {transactional_id_1}")
            transactional_id_2 = str(buf[at_3:pos], "utf-8")
        topic_data_6: int
        acks_4, timeout_ms_5, topic_data_6, = unpack_hiB(buf, pos)
        pos += 7
        if topic_data_6 > 127:
            topic_data_6, pos = uvarint_rest(buf, pos, topic_data_6)
        topic_data_6 -= 1
        topic_data_7: Any
        if topic_data_6 < 0 or topic_data_6 * 3 > end - pos:
            raise MalformedError(f"impossible count {topic_data_6}")
        topic_data_7 = []
        append_8 = topic_data_7.append
        for _ in range(topic_data_6):
            name_9: int
            name_9 = buf[pos]
            pos += 1
            if name_9 > 127:
                name_9, pos = uvarint_rest(buf, pos, name_9)
                if name_9 > 32768:
                    raise MalformedError(f"impossible length {name_9 - 1}")
            name_9 -= 1
            name_10: Any
            at_11 = pos
            pos += name_9
            if name_9 < 0 or pos > end:
                pos = at_11
                raise MalformedError(f"impossible length {name_9}")
            name_10 = str(buf[at_11:pos], "utf-8")
            partition_data_12: int
            partition_data_12 = buf[pos]
            pos += 1
            if partition_data_12 > 127:
                partition_data_12, pos = uvarint_rest(buf, pos, partition_data_12)
            partition_data_12 -= 1
            partition_data_13: Any
            if partition_data_12 < 0 or partition_data_12 * 6 > end - pos:
                raise MalformedError(f"impossible count {partition_data_12}")
            partition_data_13 = []
            append_14 = partition_data_13.append
            for _ in range(partition_data_12):
                records_16: int
                index_15, records_16, = unpack_iB(buf, pos)
                pos += 5
                if records_16 > 127:
                    records_16, pos = uvarint_rest(buf, pos, records_16)
                records_16 -= 1
                records_17: Any
                if records_16 == -1:
                    records_17 = None
                else:
                    at_18 = pos
                    pos += records_16
                    if records_16 < 0 or pos > end:
                        pos = at_18
                        raise MalformedError(f"impossible length {records_16}")
                    records_17 = buf[at_18:pos]
                tags_19 = buf[pos]
                pos += 1
                if tags_19:
                    pos = skip_tags(buf, pos, tags_19)
                append_14(PartitionProduceData(index=index_15, records=records_17))
            tags_20 = buf[pos]
            pos += 1
            if tags_20:
                pos = skip_tags(buf, pos, tags_20)
            append_8(TopicProduceData(name=name_10, partition_data=partition_data_13))
        tags_21 = buf[pos]
        pos += 1
        if tags_21:
            pos = skip_tags(buf, pos, tags_21)
        return ProduceRequest(transactional_id=transactional_id_2, acks=acks_4, timeout_ms=timeout_ms_5, topic_data=topic_data_7), pos
    except MALFORMED as error:
        raise malformed(error, 'ProduceRequest v9', line_fields(ProduceRequest, 9, 58), pos, end) from None


def encode_ProduceResponse_9(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out.append(size_3)
    else:
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.name
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out.append(size_8)
        else:
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.partition_responses
        data_10: Any
        data_10 = value_9
        size_11 = len(data_10) + 1
        if size_11 < 128:
            out.append(size_11)
        else:
            out += uvarint_bytes(size_11)
        for item_12 in data_10:
            if item_12.__class__ is bytes:
                out += item_12
                continue
            struct_13 = item_12
            value_14 = struct_13.record_errors
            data_15: Any
            data_15 = value_14
            size_16 = len(data_15) + 1
            if size_16 < 128:
                out += pack_ihqqqB(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset, size_16)
            else:
                out += pack_ihqqq(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset)
                out += uvarint_bytes(size_16)
            for item_17 in data_15:
                if item_17.__class__ is bytes:
                    out += item_17
                    continue
                struct_18 = item_17
                value_19 = struct_18.batch_index_error_message
                data_20: Any
                if value_19 is None:
                    data_20, size_21 = b'', 0
                else:
                    data_20 = value_19[:8191].encode()
                    size_21 = len(data_20) + 1
                if size_21 < 128:
                    out += pack_iB(struct_18.batch_index, size_21)
                else:
                    out += pack_i(struct_18.batch_index)
                    out += uvarint_bytes(size_21)
                out += data_20
                out.append(0)
            value_22 = struct_13.error_message
            data_23: Any
            if value_22 is None:
                data_23, size_24 = b'', 0
            else:
                data_23 = value_22[:8191].encode()
                size_24 = len(data_23) + 1
            if size_24 < 128:
                out.append(size_24)
            else:
                out += uvarint_bytes(size_24)
            out += data_23
            out.append(0)
        out.append(0)
    out += pack_ix(message.throttle_time_ms)
    return splices


def decode_ProduceRequest_10(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        transactional_id_1: int
        transactional_id_1 = buf[pos]
        pos += 1
        if transactional_id_1 > 127:
            transactional_id_1, pos = uvarint_rest(buf, pos, transactional_id_1)
            if transactional_id_1 > 32768:
                raise MalformedError(f"impossible length {transactional_id_1 - 1}")
        transactional_id_1 -= 1
        transactional_id_2: Any
        if transactional_id_1 == -1:
            transactional_id_2 = None
        else:
            at_3 = pos
            pos += transactional_id_1
            if transactional_id_1 < 0 or pos > end:
                pos = at_3
                raise MalformedError(f"impossible length {transactional_id_1}")
            transactional_id_2 = str(buf[at_3:pos], "utf-8")
        topic_data_6: int
        acks_4, timeout_ms_5, topic_data_6, = unpack_hiB(buf, pos)
        pos += 7
        if topic_data_6 > 127:
            topic_data_6, pos = uvarint_rest(buf, pos, topic_data_6)
        topic_data_6 -= 1
        topic_data_7: Any
        if topic_data_6 < 0 or topic_data_6 * 3 > end - pos:
            raise MalformedError(f"impossible count {topic_data_6}")
        topic_data_7 = []
        append_8 = topic_data_7.append
        for _ in range(topic_data_6):
            name_9: int
            name_9 = buf[pos]
            pos += 1
            if name_9 > 127:
                name_9, pos = uvarint_rest(buf, pos, name_9)
                if name_9 > 32768:
                    raise MalformedError(f"impossible length {name_9 - 1}")
            name_9 -= 1
            name_10: Any
            at_11 = pos
            pos += name_9
            if name_9 < 0 or pos > end:
                pos = at_11
                raise MalformedError(f"impossible length {name_9}")
            name_10 = str(buf[at_11:pos], "utf-8")
            partition_data_12: int
            partition_data_12 = buf[pos]
            pos += 1
            if partition_data_12 > 127:
                partition_data_12, pos = uvarint_rest(buf, pos, partition_data_12)
            partition_data_12 -= 1
            partition_data_13: Any
            if partition_data_12 < 0 or partition_data_12 * 6 > end - pos:
                raise MalformedError(f"impossible count {partition_data_12}")
            partition_data_13 = []
            append_14 = partition_data_13.append
            for _ in range(partition_data_12):
                records_16: int
                index_15, records_16, = unpack_iB(buf, pos)
                pos += 5
                if records_16 > 127:
                    records_16, pos = uvarint_rest(buf, pos, records_16)
                records_16 -= 1
                records_17: Any
                if records_16 == -1:
                    records_17 = None
                else:
                    at_18 = pos
                    pos += records_16
                    if records_16 < 0 or pos > end:
                        pos = at_18
                        raise MalformedError(f"impossible length {records_16}")
                    records_17 = buf[at_18:pos]
                tags_19 = buf[pos]
                pos += 1
                if tags_19:
                    pos = skip_tags(buf, pos, tags_19)
                append_14(PartitionProduceData(index=index_15, records=records_17))
            tags_20 = buf[pos]
            pos += 1
            if tags_20:
                pos = skip_tags(buf, pos, tags_20)
            append_8(TopicProduceData(name=name_10, partition_data=partition_data_13))
        tags_21 = buf[pos]
        pos += 1
        if tags_21:
            pos = skip_tags(buf, pos, tags_21)
        return ProduceRequest(transactional_id=transactional_id_2, acks=acks_4, timeout_ms=timeout_ms_5, topic_data=topic_data_7), pos
    except MALFORMED as error:
        raise malformed(error, 'ProduceRequest v10', line_fields(ProduceRequest, 10, 236), pos, end) from None


def encode_ProduceResponse_10(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out.append(size_3)
    else:
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.name
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out.append(size_8)
        else:
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.partition_responses
        data_10: Any
        data_10 = value_9
        size_11 = len(data_10) + 1
        if size_11 < 128:
            out.append(size_11)
        else:
            out += uvarint_bytes(size_11)
        for item_12 in data_10:
            if item_12.__class__ is bytes:
                out += item_12
                continue
            struct_13 = item_12
            value_14 = struct_13.record_errors
            data_15: Any
            data_15 = value_14
            size_16 = len(data_15) + 1
            if size_16 < 128:
                out += pack_ihqqqB(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset, size_16)
            else:
                out += pack_ihqqq(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset)
                out += uvarint_bytes(size_16)
            for item_17 in data_15:
                if item_17.__class__ is bytes:
                    out += item_17
                    continue
                struct_18 = item_17
                value_19 = struct_18.batch_index_error_message
                data_20: Any
                if value_19 is None:
                    data_20, size_21 = b'', 0
                else:
                    data_20 = value_19[:8191].encode()
                    size_21 = len(data_20) + 1
                if size_21 < 128:
                    out += pack_iB(struct_18.batch_index, size_21)
                else:
                    out += pack_i(struct_18.batch_index)
                    out += uvarint_bytes(size_21)
                out += data_20
                out.append(0)
            value_22 = struct_13.error_message
            data_23: Any
            if value_22 is None:
                data_23, size_24 = b'', 0
            else:
                data_23 = value_22[:8191].encode()
                size_24 = len(data_23) + 1
            if size_24 < 128:
                out.append(size_24)
            else:
                out += uvarint_bytes(size_24)
            out += data_23
            count_25 = (struct_13.current_leader != DEFAULT_current_leader)
            out.append(count_25)
            if count_25:
                if struct_13.current_leader != DEFAULT_current_leader:
                    tagged_26 = bytearray()
                    struct_27 = struct_13.current_leader
                    tagged_26 += pack_iix(struct_27.leader_id, struct_27.leader_epoch)
                    out += b'\x00' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_ProduceRequest_11(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        transactional_id_1: int
        transactional_id_1 = buf[pos]
        pos += 1
        if transactional_id_1 > 127:
            transactional_id_1, pos = uvarint_rest(buf, pos, transactional_id_1)
            if transactional_id_1 > 32768:
                raise MalformedError(f"impossible length {transactional_id_1 - 1}")
        transactional_id_1 -= 1
        transactional_id_2: Any
        if transactional_id_1 == -1:
            transactional_id_2 = None
        else:
            at_3 = pos
            pos += transactional_id_1
            if transactional_id_1 < 0 or pos > end:
                pos = at_3
                raise MalformedError(f"impossible length {transactional_id_1}")
            transactional_id_2 = str(buf[at_3:pos], "utf-8")
        topic_data_6: int
        acks_4, timeout_ms_5, topic_data_6, = unpack_hiB(buf, pos)
        pos += 7
        if topic_data_6 > 127:
            topic_data_6, pos = uvarint_rest(buf, pos, topic_data_6)
        topic_data_6 -= 1
        topic_data_7: Any
        if topic_data_6 < 0 or topic_data_6 * 3 > end - pos:
            raise MalformedError(f"impossible count {topic_data_6}")
        topic_data_7 = []
        append_8 = topic_data_7.append
        for _ in range(topic_data_6):
            name_9: int
            name_9 = buf[pos]
            pos += 1
            if name_9 > 127:
                name_9, pos = uvarint_rest(buf, pos, name_9)
                if name_9 > 32768:
                    raise MalformedError(f"impossible length {name_9 - 1}")
            name_9 -= 1
            name_10: Any
            at_11 = pos
            pos += name_9
            if name_9 < 0 or pos > end:
                pos = at_11
                raise MalformedError(f"impossible length {name_9}")
            name_10 = str(buf[at_11:pos], "utf-8")
            partition_data_12: int
            partition_data_12 = buf[pos]
            pos += 1
            if partition_data_12 > 127:
                partition_data_12, pos = uvarint_rest(buf, pos, partition_data_12)
            partition_data_12 -= 1
            partition_data_13: Any
            if partition_data_12 < 0 or partition_data_12 * 6 > end - pos:
                raise MalformedError(f"impossible count {partition_data_12}")
            partition_data_13 = []
            append_14 = partition_data_13.append
            for _ in range(partition_data_12):
                records_16: int
                index_15, records_16, = unpack_iB(buf, pos)
                pos += 5
                if records_16 > 127:
                    records_16, pos = uvarint_rest(buf, pos, records_16)
                records_16 -= 1
                records_17: Any
                if records_16 == -1:
                    records_17 = None
                else:
                    at_18 = pos
                    pos += records_16
                    if records_16 < 0 or pos > end:
                        pos = at_18
                        raise MalformedError(f"impossible length {records_16}")
                    records_17 = buf[at_18:pos]
                tags_19 = buf[pos]
                pos += 1
                if tags_19:
                    pos = skip_tags(buf, pos, tags_19)
                append_14(PartitionProduceData(index=index_15, records=records_17))
            tags_20 = buf[pos]
            pos += 1
            if tags_20:
                pos = skip_tags(buf, pos, tags_20)
            append_8(TopicProduceData(name=name_10, partition_data=partition_data_13))
        tags_21 = buf[pos]
        pos += 1
        if tags_21:
            pos = skip_tags(buf, pos, tags_21)
        return ProduceRequest(transactional_id=transactional_id_2, acks=acks_4, timeout_ms=timeout_ms_5, topic_data=topic_data_7), pos
    except MALFORMED as error:
        raise malformed(error, 'ProduceRequest v11', line_fields(ProduceRequest, 11, 464), pos, end) from None


def encode_ProduceResponse_11(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out.append(size_3)
    else:
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.name
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out.append(size_8)
        else:
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.partition_responses
        data_10: Any
        data_10 = value_9
        size_11 = len(data_10) + 1
        if size_11 < 128:
            out.append(size_11)
        else:
            out += uvarint_bytes(size_11)
        for item_12 in data_10:
            if item_12.__class__ is bytes:
                out += item_12
                continue
            struct_13 = item_12
            value_14 = struct_13.record_errors
            data_15: Any
            data_15 = value_14
            size_16 = len(data_15) + 1
            if size_16 < 128:
                out += pack_ihqqqB(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset, size_16)
            else:
                out += pack_ihqqq(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset)
                out += uvarint_bytes(size_16)
            for item_17 in data_15:
                if item_17.__class__ is bytes:
                    out += item_17
                    continue
                struct_18 = item_17
                value_19 = struct_18.batch_index_error_message
                data_20: Any
                if value_19 is None:
                    data_20, size_21 = b'', 0
                else:
                    data_20 = value_19[:8191].encode()
                    size_21 = len(data_20) + 1
                if size_21 < 128:
                    out += pack_iB(struct_18.batch_index, size_21)
                else:
                    out += pack_i(struct_18.batch_index)
                    out += uvarint_bytes(size_21)
                out += data_20
                out.append(0)
            value_22 = struct_13.error_message
            data_23: Any
            if value_22 is None:
                data_23, size_24 = b'', 0
            else:
                data_23 = value_22[:8191].encode()
                size_24 = len(data_23) + 1
            if size_24 < 128:
                out.append(size_24)
            else:
                out += uvarint_bytes(size_24)
            out += data_23
            count_25 = (struct_13.current_leader != DEFAULT_current_leader)
            out.append(count_25)
            if count_25:
                if struct_13.current_leader != DEFAULT_current_leader:
                    tagged_26 = bytearray()
                    struct_27 = struct_13.current_leader
                    tagged_26 += pack_iix(struct_27.leader_id, struct_27.leader_epoch)
                    out += b'\x00' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_ProduceRequest_12(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        transactional_id_1: int
        transactional_id_1 = buf[pos]
        pos += 1
        if transactional_id_1 > 127:
            transactional_id_1, pos = uvarint_rest(buf, pos, transactional_id_1)
            if transactional_id_1 > 32768:
                raise MalformedError(f"impossible length {transactional_id_1 - 1}")
        transactional_id_1 -= 1
        transactional_id_2: Any
        if transactional_id_1 == -1:
            transactional_id_2 = None
        else:
            at_3 = pos
            pos += transactional_id_1
            if transactional_id_1 < 0 or pos > end:
                pos = at_3
                raise MalformedError(f"impossible length {transactional_id_1}")
            transactional_id_2 = str(buf[at_3:pos], "utf-8")
        topic_data_6: int
        acks_4, timeout_ms_5, topic_data_6, = unpack_hiB(buf, pos)
        pos += 7
        if topic_data_6 > 127:
            topic_data_6, pos = uvarint_rest(buf, pos, topic_data_6)
        topic_data_6 -= 1
        topic_data_7: Any
        if topic_data_6 < 0 or topic_data_6 * 3 > end - pos:
            raise MalformedError(f"impossible count {topic_data_6}")
        topic_data_7 = []
        append_8 = topic_data_7.append
        for _ in range(topic_data_6):
            name_9: int
            name_9 = buf[pos]
            pos += 1
            if name_9 > 127:
                name_9, pos = uvarint_rest(buf, pos, name_9)
                if name_9 > 32768:
                    raise MalformedError(f"impossible length {name_9 - 1}")
            name_9 -= 1
            name_10: Any
            at_11 = pos
            pos += name_9
            if name_9 < 0 or pos > end:
                pos = at_11
                raise MalformedError(f"impossible length {name_9}")
            name_10 = str(buf[at_11:pos], "utf-8")
            partition_data_12: int
            partition_data_12 = buf[pos]
            pos += 1
            if partition_data_12 > 127:
                partition_data_12, pos = uvarint_rest(buf, pos, partition_data_12)
            partition_data_12 -= 1
            partition_data_13: Any
            if partition_data_12 < 0 or partition_data_12 * 6 > end - pos:
                raise MalformedError(f"impossible count {partition_data_12}")
            partition_data_13 = []
            append_14 = partition_data_13.append
            for _ in range(partition_data_12):
                records_16: int
                index_15, records_16, = unpack_iB(buf, pos)
                pos += 5
                if records_16 > 127:
                    records_16, pos = uvarint_rest(buf, pos, records_16)
                records_16 -= 1
                records_17: Any
                if records_16 == -1:
                    records_17 = None
                else:
                    at_18 = pos
                    pos += records_16
                    if records_16 < 0 or pos > end:
                        pos = at_18
                        raise MalformedError(f"impossible length {records_16}")
                    records_17 = buf[at_18:pos]
                tags_19 = buf[pos]
                pos += 1
                if tags_19:
                    pos = skip_tags(buf, pos, tags_19)
                append_14(PartitionProduceData(index=index_15, records=records_17))
            tags_20 = buf[pos]
            pos += 1
            if tags_20:
                pos = skip_tags(buf, pos, tags_20)
            append_8(TopicProduceData(name=name_10, partition_data=partition_data_13))
        tags_21 = buf[pos]
        pos += 1
        if tags_21:
            pos = skip_tags(buf, pos, tags_21)
        return ProduceRequest(transactional_id=transactional_id_2, acks=acks_4, timeout_ms=timeout_ms_5, topic_data=topic_data_7), pos
    except MALFORMED as error:
        raise malformed(error, 'ProduceRequest v12', line_fields(ProduceRequest, 12, 692), pos, end) from None


def encode_ProduceResponse_12(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out.append(size_3)
    else:
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.name
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out.append(size_8)
        else:
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.partition_responses
        data_10: Any
        data_10 = value_9
        size_11 = len(data_10) + 1
        if size_11 < 128:
            out.append(size_11)
        else:
            out += uvarint_bytes(size_11)
        for item_12 in data_10:
            if item_12.__class__ is bytes:
                out += item_12
                continue
            struct_13 = item_12
            value_14 = struct_13.record_errors
            data_15: Any
            data_15 = value_14
            size_16 = len(data_15) + 1
            if size_16 < 128:
                out += pack_ihqqqB(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset, size_16)
            else:
                out += pack_ihqqq(struct_13.index, struct_13.error_code, struct_13.base_offset, struct_13.log_append_time_ms, struct_13.log_start_offset)
                out += uvarint_bytes(size_16)
            for item_17 in data_15:
                if item_17.__class__ is bytes:
                    out += item_17
                    continue
                struct_18 = item_17
                value_19 = struct_18.batch_index_error_message
                data_20: Any
                if value_19 is None:
                    data_20, size_21 = b'', 0
                else:
                    data_20 = value_19[:8191].encode()
                    size_21 = len(data_20) + 1
                if size_21 < 128:
                    out += pack_iB(struct_18.batch_index, size_21)
                else:
                    out += pack_i(struct_18.batch_index)
                    out += uvarint_bytes(size_21)
                out += data_20
                out.append(0)
            value_22 = struct_13.error_message
            data_23: Any
            if value_22 is None:
                data_23, size_24 = b'', 0
            else:
                data_23 = value_22[:8191].encode()
                size_24 = len(data_23) + 1
            if size_24 < 128:
                out.append(size_24)
            else:
                out += uvarint_bytes(size_24)
            out += data_23
            count_25 = (struct_13.current_leader != DEFAULT_current_leader)
            out.append(count_25)
            if count_25:
                if struct_13.current_leader != DEFAULT_current_leader:
                    tagged_26 = bytearray()
                    struct_27 = struct_13.current_leader
                    tagged_26 += pack_iix(struct_27.leader_id, struct_27.leader_epoch)
                    out += b'\x00' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_ProduceRequest_13(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        transactional_id_1: int
        transactional_id_1 = buf[pos]
        pos += 1
        if transactional_id_1 > 127:
            transactional_id_1, pos = uvarint_rest(buf, pos, transactional_id_1)
            if transactional_id_1 > 32768:
                raise MalformedError(f"impossible length {transactional_id_1 - 1}")
        transactional_id_1 -= 1
        transactional_id_2: Any
        if transactional_id_1 == -1:
            transactional_id_2 = None
        else:
            at_3 = pos
            pos += transactional_id_1
            if transactional_id_1 < 0 or pos > end:
                pos = at_3
                raise MalformedError(f"impossible length {transactional_id_1}")
            transactional_id_2 = str(buf[at_3:pos], "utf-8")
        topic_data_6: int
        acks_4, timeout_ms_5, topic_data_6, = unpack_hiB(buf, pos)
        pos += 7
        if topic_data_6 > 127:
            topic_data_6, pos = uvarint_rest(buf, pos, topic_data_6)
        topic_data_6 -= 1
        topic_data_7: Any
        if topic_data_6 < 0 or topic_data_6 * 18 > end - pos:
            raise MalformedError(f"impossible count {topic_data_6}")
        topic_data_7 = []
        append_8 = topic_data_7.append
        for _ in range(topic_data_6):
            partition_data_10: int
            topic_id_9, partition_data_10, = unpack_16sB(buf, pos)
            pos += 17
            if partition_data_10 > 127:
                partition_data_10, pos = uvarint_rest(buf, pos, partition_data_10)
            partition_data_10 -= 1
            partition_data_11: Any
            if partition_data_10 < 0 or partition_data_10 * 6 > end - pos:
                raise MalformedError(f"impossible count {partition_data_10}")
            partition_data_11 = []
            append_12 = partition_data_11.append
            for _ in range(partition_data_10):
                records_14: int
                index_13, records_14, = unpack_iB(buf, pos)
                pos += 5
                if records_14 > 127:
                    records_14, pos = uvarint_rest(buf, pos, records_14)
                records_14 -= 1
                records_15: Any
                if records_14 == -1:
                    records_15 = None
                else:
                    at_16 = pos
                    pos += records_14
                    if records_14 < 0 or pos > end:
                        pos = at_16
                        raise MalformedError(f"impossible length {records_14}")
                    records_15 = buf[at_16:pos]
                tags_17 = buf[pos]
                pos += 1
                if tags_17:
                    pos = skip_tags(buf, pos, tags_17)
                append_12(PartitionProduceData(index=index_13, records=records_15))
            tags_18 = buf[pos]
            pos += 1
            if tags_18:
                pos = skip_tags(buf, pos, tags_18)
            append_8(TopicProduceData(topic_id=topic_id_9, partition_data=partition_data_11))
        tags_19 = buf[pos]
        pos += 1
        if tags_19:
            pos = skip_tags(buf, pos, tags_19)
        return ProduceRequest(transactional_id=transactional_id_2, acks=acks_4, timeout_ms=timeout_ms_5, topic_data=topic_data_7), pos
    except MALFORMED as error:
        raise malformed(error, 'ProduceRequest v13', line_fields(ProduceRequest, 13, 920), pos, end) from None


def encode_ProduceResponse_13(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out.append(size_3)
    else:
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partition_responses
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.record_errors
            data_12: Any
            data_12 = value_11
            size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.index, struct_10.error_code, struct_10.base_offset, struct_10.log_append_time_ms, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.index, struct_10.error_code, struct_10.base_offset, struct_10.log_append_time_ms, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                value_16 = struct_15.batch_index_error_message
                data_17: Any
                if value_16 is None:
                    data_17, size_18 = b'', 0
                else:
                    data_17 = value_16[:8191].encode()
                    size_18 = len(data_17) + 1
                if size_18 < 128:
                    out += pack_iB(struct_15.batch_index, size_18)
                else:
                    out += pack_i(struct_15.batch_index)
                    out += uvarint_bytes(size_18)
                out += data_17
                out.append(0)
            value_19 = struct_10.error_message
            data_20: Any
            if value_19 is None:
                data_20, size_21 = b'', 0
            else:
                data_20 = value_19[:8191].encode()
                size_21 = len(data_20) + 1
            if size_21 < 128:
                out.append(size_21)
            else:
                out += uvarint_bytes(size_21)
            out += data_20
            count_22 = (struct_10.current_leader != DEFAULT_current_leader)
            out.append(count_22)
            if count_22:
                if struct_10.current_leader != DEFAULT_current_leader:
                    tagged_23 = bytearray()
                    struct_24 = struct_10.current_leader
                    tagged_23 += pack_iix(struct_24.leader_id, struct_24.leader_epoch)
                    out += b'\x00' + uvarint_bytes(len(tagged_23)) + tagged_23
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    count_25 = (message.node_endpoints != [])
    out.append(count_25)
    if count_25:
        if message.node_endpoints != []:
            tagged_26 = bytearray()
            value_27 = message.node_endpoints
            data_28: Any
            data_28 = value_27
            size_29 = len(data_28) + 1
            if size_29 < 128:
                tagged_26.append(size_29)
            else:
                tagged_26 += uvarint_bytes(size_29)
            for item_30 in data_28:
                if item_30.__class__ is bytes:
                    tagged_26 += item_30
                    continue
                struct_31 = item_30
                value_32 = struct_31.host
                data_33: Any
                data_33 = value_32.encode()
                size_34 = len(data_33) + 1
                if size_34 < 128:
                    tagged_26 += pack_iB(struct_31.node_id, size_34)
                else:
                    tagged_26 += pack_i(struct_31.node_id)
                    tagged_26 += uvarint_bytes(size_34)
                tagged_26 += data_33
                value_35 = struct_31.rack
                data_36: Any
                if value_35 is None:
                    data_36, size_37 = b'', 0
                else:
                    data_36 = value_35.encode()
                    size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_26 += pack_iB(struct_31.port, size_37)
                else:
                    tagged_26 += pack_i(struct_31.port)
                    tagged_26 += uvarint_bytes(size_37)
                tagged_26 += data_36
                tagged_26.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_26)) + tagged_26
    return splices


def decode_FetchRequest_12(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_8: int
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, = unpack_iiiibiiB(buf, pos)
        pos += 26
        if topics_8 > 127:
            topics_8, pos = uvarint_rest(buf, pos, topics_8)
        topics_8 -= 1
        topics_9: Any
        if topics_8 < 0 or topics_8 * 3 > end - pos:
            raise MalformedError(f"impossible count {topics_8}")
        topics_9 = []
        append_10 = topics_9.append
        for _ in range(topics_8):
            topic_11: int
            topic_11 = buf[pos]
            pos += 1
            if topic_11 > 127:
                topic_11, pos = uvarint_rest(buf, pos, topic_11)
                if topic_11 > 32768:
                    raise MalformedError(f"impossible length {topic_11 - 1}")
            topic_11 -= 1
            topic_12: Any
            at_13 = pos
            pos += topic_11
            if topic_11 < 0 or pos > end:
                pos = at_13
                raise MalformedError(f"impossible length {topic_11}")
            topic_12 = str(buf[at_13:pos], "utf-8")
            partitions_14: int
            partitions_14 = buf[pos]
            pos += 1
            if partitions_14 > 127:
                partitions_14, pos = uvarint_rest(buf, pos, partitions_14)
            partitions_14 -= 1
            partitions_15: Any
            if partitions_14 < 0 or partitions_14 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_14}")
            partitions_15 = []
            append_16 = partitions_15.append
            for _ in range(partitions_14):
                partition_17, current_leader_epoch_18, fetch_offset_19, last_fetched_epoch_20, log_start_offset_21, partition_max_bytes_22, tags_23, = unpack_iiqiqiB(buf, pos)
                pos += 33
                if tags_23:
                    pos = skip_tags(buf, pos, tags_23)
                append_16(FetchPartition(partition=partition_17, current_leader_epoch=current_leader_epoch_18, fetch_offset=fetch_offset_19, last_fetched_epoch=last_fetched_epoch_20, log_start_offset=log_start_offset_21, partition_max_bytes=partition_max_bytes_22))
            tags_24 = buf[pos]
            pos += 1
            if tags_24:
                pos = skip_tags(buf, pos, tags_24)
            append_10(FetchTopic(topic=topic_12, partitions=partitions_15))
        forgotten_topics_data_25: int
        forgotten_topics_data_25 = buf[pos]
        pos += 1
        if forgotten_topics_data_25 > 127:
            forgotten_topics_data_25, pos = uvarint_rest(buf, pos, forgotten_topics_data_25)
        forgotten_topics_data_25 -= 1
        forgotten_topics_data_26: Any
        if forgotten_topics_data_25 < 0 or forgotten_topics_data_25 * 3 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_25}")
        forgotten_topics_data_26 = []
        append_27 = forgotten_topics_data_26.append
        for _ in range(forgotten_topics_data_25):
            topic_28: int
            topic_28 = buf[pos]
            pos += 1
            if topic_28 > 127:
                topic_28, pos = uvarint_rest(buf, pos, topic_28)
                if topic_28 > 32768:
                    raise MalformedError(f"impossible length {topic_28 - 1}")
            topic_28 -= 1
            topic_29: Any
            at_30 = pos
            pos += topic_28
            if topic_28 < 0 or pos > end:
                pos = at_30
                raise MalformedError(f"impossible length {topic_28}")
            topic_29 = str(buf[at_30:pos], "utf-8")
            partitions_31: int
            partitions_31 = buf[pos]
            pos += 1
            if partitions_31 > 127:
                partitions_31, pos = uvarint_rest(buf, pos, partitions_31)
            partitions_31 -= 1
            partitions_32: Any
            if partitions_31 < 0 or partitions_31 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_31}")
            partitions_32 = list(repeated('i', partitions_31).unpack_from(buf, pos))
            pos += partitions_31 * 4
            tags_33 = buf[pos]
            pos += 1
            if tags_33:
                pos = skip_tags(buf, pos, tags_33)
            append_27(ForgottenTopic(topic=topic_29, partitions=partitions_32))
        rack_id_34: int
        rack_id_34 = buf[pos]
        pos += 1
        if rack_id_34 > 127:
            rack_id_34, pos = uvarint_rest(buf, pos, rack_id_34)
            if rack_id_34 > 32768:
                raise MalformedError(f"impossible length {rack_id_34 - 1}")
        rack_id_34 -= 1
        rack_id_35: Any
        at_36 = pos
        pos += rack_id_34
        if rack_id_34 < 0 or pos > end:
            pos = at_36
            raise MalformedError(f"impossible length {rack_id_34}")
        rack_id_35 = str(buf[at_36:pos], "utf-8")
        tags_37 = buf[pos]
        pos += 1
        cluster_id_38: Any = DEFAULT_cluster_id
        if tags_37:
            if tags_37 > 127:
                tags_37, pos = uvarint_rest(buf, pos, tags_37)
            check_tags(tags_37, end - pos)
            for _ in range(tags_37):
                tag_39, pos = uvarint(buf, pos)
                size_40, pos = uvarint(buf, pos)
                stop_41 = pos + size_40
                if stop_41 > end:
                    raise MalformedError(f"impossible size {size_40}")
                if tag_39 == 0:
                    cluster_id_42: int
                    cluster_id_42 = buf[pos]
                    pos += 1
                    if cluster_id_42 > 127:
                        cluster_id_42, pos = uvarint_rest(buf, pos, cluster_id_42)
                        if cluster_id_42 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_42 - 1}")
                    cluster_id_42 -= 1
                    cluster_id_43: Any
                    if cluster_id_42 == -1:
                        cluster_id_43 = None
                    else:
                        at_44 = pos
                        pos += cluster_id_42
                        if cluster_id_42 < 0 or pos > end:
                            pos = at_44
                            raise MalformedError(f"impossible length {cluster_id_42}")
                        cluster_id_43 = str(buf[at_44:pos], "utf-8")
                    cluster_id_38 = cluster_id_43
                else:
                    pos = stop_41
                if pos != stop_41:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(replica_id=replica_id_1, max_wait_ms=max_wait_ms_2, min_bytes=min_bytes_3, max_bytes=max_bytes_4, isolation_level=isolation_level_5, session_id=session_id_6, session_epoch=session_epoch_7, topics=topics_9, forgotten_topics_data=forgotten_topics_data_26, rack_id=rack_id_35, cluster_id=cluster_id_38), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v12', line_fields(FetchRequest, 12, 1125), pos, end) from None


def encode_FetchResponse_12(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.topic
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out.append(size_8)
        else:
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.partitions
        data_10: Any
        data_10 = value_9
        size_11 = len(data_10) + 1
        if size_11 < 128:
            out.append(size_11)
        else:
            out += uvarint_bytes(size_11)
        for item_12 in data_10:
            if item_12.__class__ is bytes:
                out += item_12
                continue
            struct_13 = item_12
            value_14 = struct_13.aborted_transactions
            data_15: Any
            if value_14 is None:
                data_15, size_16 = b'', 0
            else:
                data_15 = value_14
                size_16 = len(data_15) + 1
            if size_16 < 128:
                out += pack_ihqqqB(struct_13.partition_index, struct_13.error_code, struct_13.high_watermark, struct_13.last_stable_offset, struct_13.log_start_offset, size_16)
            else:
                out += pack_ihqqq(struct_13.partition_index, struct_13.error_code, struct_13.high_watermark, struct_13.last_stable_offset, struct_13.log_start_offset)
                out += uvarint_bytes(size_16)
            for item_17 in data_15:
                if item_17.__class__ is bytes:
                    out += item_17
                    continue
                struct_18 = item_17
                out += pack_qqx(struct_18.producer_id, struct_18.first_offset)
            value_19 = struct_13.records
            data_20: Any
            if value_19 is None:
                data_20, size_21 = b'', 0
            else:
                data_20 = value_19
                size_21 = len(data_20) + 1
            if size_21 < 128:
                out += pack_iB(struct_13.preferred_read_replica, size_21)
            else:
                out += pack_i(struct_13.preferred_read_replica)
                out += uvarint_bytes(size_21)
            if isinstance(data_20, (bytes, bytearray, memoryview)):
                out += data_20
            else:
                splices = (*splices, (len(out), data_20))
            count_24 = (struct_13.diverging_epoch != DEFAULT_diverging_epoch) + (struct_13.current_leader != DEFAULT_current_leader_23) + (struct_13.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_24)
            if count_24:
                if struct_13.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_25 = bytearray()
                    struct_26 = struct_13.diverging_epoch
                    tagged_25 += pack_iqx(struct_26.epoch, struct_26.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_25)) + tagged_25
                if struct_13.current_leader != DEFAULT_current_leader_23:
                    tagged_27 = bytearray()
                    struct_28 = struct_13.current_leader
                    tagged_27 += pack_iix(struct_28.leader_id, struct_28.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_27)) + tagged_27
                if struct_13.snapshot_id != DEFAULT_snapshot_id:
                    tagged_29 = bytearray()
                    struct_30 = struct_13.snapshot_id
                    tagged_29 += pack_qix(struct_30.end_offset, struct_30.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_29)) + tagged_29
        out.append(0)
    out.append(0)
    return splices


def decode_FetchRequest_13(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_8: int
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, = unpack_iiiibiiB(buf, pos)
        pos += 26
        if topics_8 > 127:
            topics_8, pos = uvarint_rest(buf, pos, topics_8)
        topics_8 -= 1
        topics_9: Any
        if topics_8 < 0 or topics_8 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_8}")
        topics_9 = []
        append_10 = topics_9.append
        for _ in range(topics_8):
            partitions_12: int
            topic_id_11, partitions_12, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_12 > 127:
                partitions_12, pos = uvarint_rest(buf, pos, partitions_12)
            partitions_12 -= 1
            partitions_13: Any
            if partitions_12 < 0 or partitions_12 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_12}")
            partitions_13 = []
            append_14 = partitions_13.append
            for _ in range(partitions_12):
                partition_15, current_leader_epoch_16, fetch_offset_17, last_fetched_epoch_18, log_start_offset_19, partition_max_bytes_20, tags_21, = unpack_iiqiqiB(buf, pos)
                pos += 33
                if tags_21:
                    pos = skip_tags(buf, pos, tags_21)
                append_14(FetchPartition(partition=partition_15, current_leader_epoch=current_leader_epoch_16, fetch_offset=fetch_offset_17, last_fetched_epoch=last_fetched_epoch_18, log_start_offset=log_start_offset_19, partition_max_bytes=partition_max_bytes_20))
            tags_22 = buf[pos]
            pos += 1
            if tags_22:
                pos = skip_tags(buf, pos, tags_22)
            append_10(FetchTopic(topic_id=topic_id_11, partitions=partitions_13))
        forgotten_topics_data_23: int
        forgotten_topics_data_23 = buf[pos]
        pos += 1
        if forgotten_topics_data_23 > 127:
            forgotten_topics_data_23, pos = uvarint_rest(buf, pos, forgotten_topics_data_23)
        forgotten_topics_data_23 -= 1
        forgotten_topics_data_24: Any
        if forgotten_topics_data_23 < 0 or forgotten_topics_data_23 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_23}")
        forgotten_topics_data_24 = []
        append_25 = forgotten_topics_data_24.append
        for _ in range(forgotten_topics_data_23):
            partitions_27: int
            topic_id_26, partitions_27, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_27 > 127:
                partitions_27, pos = uvarint_rest(buf, pos, partitions_27)
            partitions_27 -= 1
            partitions_28: Any
            if partitions_27 < 0 or partitions_27 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_27}")
            partitions_28 = list(repeated('i', partitions_27).unpack_from(buf, pos))
            pos += partitions_27 * 4
            tags_29 = buf[pos]
            pos += 1
            if tags_29:
                pos = skip_tags(buf, pos, tags_29)
            append_25(ForgottenTopic(topic_id=topic_id_26, partitions=partitions_28))
        rack_id_30: int
        rack_id_30 = buf[pos]
        pos += 1
        if rack_id_30 > 127:
            rack_id_30, pos = uvarint_rest(buf, pos, rack_id_30)
            if rack_id_30 > 32768:
                raise MalformedError(f"impossible length {rack_id_30 - 1}")
        rack_id_30 -= 1
        rack_id_31: Any
        at_32 = pos
        pos += rack_id_30
        if rack_id_30 < 0 or pos > end:
            pos = at_32
            raise MalformedError(f"impossible length {rack_id_30}")
        rack_id_31 = str(buf[at_32:pos], "utf-8")
        tags_33 = buf[pos]
        pos += 1
        cluster_id_34: Any = DEFAULT_cluster_id
        if tags_33:
            if tags_33 > 127:
                tags_33, pos = uvarint_rest(buf, pos, tags_33)
            check_tags(tags_33, end - pos)
            for _ in range(tags_33):
                tag_35, pos = uvarint(buf, pos)
                size_36, pos = uvarint(buf, pos)
                stop_37 = pos + size_36
                if stop_37 > end:
                    raise MalformedError(f"impossible size {size_36}")
                if tag_35 == 0:
                    cluster_id_38: int
                    cluster_id_38 = buf[pos]
                    pos += 1
                    if cluster_id_38 > 127:
                        cluster_id_38, pos = uvarint_rest(buf, pos, cluster_id_38)
                        if cluster_id_38 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_38 - 1}")
                    cluster_id_38 -= 1
                    cluster_id_39: Any
                    if cluster_id_38 == -1:
                        cluster_id_39 = None
                    else:
                        at_40 = pos
                        pos += cluster_id_38
                        if cluster_id_38 < 0 or pos > end:
                            pos = at_40
                            raise MalformedError(f"impossible length {cluster_id_38}")
                        cluster_id_39 = str(buf[at_40:pos], "utf-8")
                    cluster_id_34 = cluster_id_39
                else:
                    pos = stop_37
                if pos != stop_37:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(replica_id=replica_id_1, max_wait_ms=max_wait_ms_2, min_bytes=min_bytes_3, max_bytes=max_bytes_4, isolation_level=isolation_level_5, session_id=session_id_6, session_epoch=session_epoch_7, topics=topics_9, forgotten_topics_data=forgotten_topics_data_24, rack_id=rack_id_31, cluster_id=cluster_id_34), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v13', line_fields(FetchRequest, 13, 1372), pos, end) from None


def encode_FetchResponse_13(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out.append(0)
    return splices


def decode_FetchRequest_14(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_8: int
        replica_id_1, max_wait_ms_2, min_bytes_3, max_bytes_4, isolation_level_5, session_id_6, session_epoch_7, topics_8, = unpack_iiiibiiB(buf, pos)
        pos += 26
        if topics_8 > 127:
            topics_8, pos = uvarint_rest(buf, pos, topics_8)
        topics_8 -= 1
        topics_9: Any
        if topics_8 < 0 or topics_8 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_8}")
        topics_9 = []
        append_10 = topics_9.append
        for _ in range(topics_8):
            partitions_12: int
            topic_id_11, partitions_12, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_12 > 127:
                partitions_12, pos = uvarint_rest(buf, pos, partitions_12)
            partitions_12 -= 1
            partitions_13: Any
            if partitions_12 < 0 or partitions_12 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_12}")
            partitions_13 = []
            append_14 = partitions_13.append
            for _ in range(partitions_12):
                partition_15, current_leader_epoch_16, fetch_offset_17, last_fetched_epoch_18, log_start_offset_19, partition_max_bytes_20, tags_21, = unpack_iiqiqiB(buf, pos)
                pos += 33
                if tags_21:
                    pos = skip_tags(buf, pos, tags_21)
                append_14(FetchPartition(partition=partition_15, current_leader_epoch=current_leader_epoch_16, fetch_offset=fetch_offset_17, last_fetched_epoch=last_fetched_epoch_18, log_start_offset=log_start_offset_19, partition_max_bytes=partition_max_bytes_20))
            tags_22 = buf[pos]
            pos += 1
            if tags_22:
                pos = skip_tags(buf, pos, tags_22)
            append_10(FetchTopic(topic_id=topic_id_11, partitions=partitions_13))
        forgotten_topics_data_23: int
        forgotten_topics_data_23 = buf[pos]
        pos += 1
        if forgotten_topics_data_23 > 127:
            forgotten_topics_data_23, pos = uvarint_rest(buf, pos, forgotten_topics_data_23)
        forgotten_topics_data_23 -= 1
        forgotten_topics_data_24: Any
        if forgotten_topics_data_23 < 0 or forgotten_topics_data_23 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_23}")
        forgotten_topics_data_24 = []
        append_25 = forgotten_topics_data_24.append
        for _ in range(forgotten_topics_data_23):
            partitions_27: int
            topic_id_26, partitions_27, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_27 > 127:
                partitions_27, pos = uvarint_rest(buf, pos, partitions_27)
            partitions_27 -= 1
            partitions_28: Any
            if partitions_27 < 0 or partitions_27 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_27}")
            partitions_28 = list(repeated('i', partitions_27).unpack_from(buf, pos))
            pos += partitions_27 * 4
            tags_29 = buf[pos]
            pos += 1
            if tags_29:
                pos = skip_tags(buf, pos, tags_29)
            append_25(ForgottenTopic(topic_id=topic_id_26, partitions=partitions_28))
        rack_id_30: int
        rack_id_30 = buf[pos]
        pos += 1
        if rack_id_30 > 127:
            rack_id_30, pos = uvarint_rest(buf, pos, rack_id_30)
            if rack_id_30 > 32768:
                raise MalformedError(f"impossible length {rack_id_30 - 1}")
        rack_id_30 -= 1
        rack_id_31: Any
        at_32 = pos
        pos += rack_id_30
        if rack_id_30 < 0 or pos > end:
            pos = at_32
            raise MalformedError(f"impossible length {rack_id_30}")
        rack_id_31 = str(buf[at_32:pos], "utf-8")
        tags_33 = buf[pos]
        pos += 1
        cluster_id_34: Any = DEFAULT_cluster_id
        if tags_33:
            if tags_33 > 127:
                tags_33, pos = uvarint_rest(buf, pos, tags_33)
            check_tags(tags_33, end - pos)
            for _ in range(tags_33):
                tag_35, pos = uvarint(buf, pos)
                size_36, pos = uvarint(buf, pos)
                stop_37 = pos + size_36
                if stop_37 > end:
                    raise MalformedError(f"impossible size {size_36}")
                if tag_35 == 0:
                    cluster_id_38: int
                    cluster_id_38 = buf[pos]
                    pos += 1
                    if cluster_id_38 > 127:
                        cluster_id_38, pos = uvarint_rest(buf, pos, cluster_id_38)
                        if cluster_id_38 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_38 - 1}")
                    cluster_id_38 -= 1
                    cluster_id_39: Any
                    if cluster_id_38 == -1:
                        cluster_id_39 = None
                    else:
                        at_40 = pos
                        pos += cluster_id_38
                        if cluster_id_38 < 0 or pos > end:
                            pos = at_40
                            raise MalformedError(f"impossible length {cluster_id_38}")
                        cluster_id_39 = str(buf[at_40:pos], "utf-8")
                    cluster_id_34 = cluster_id_39
                else:
                    pos = stop_37
                if pos != stop_37:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(replica_id=replica_id_1, max_wait_ms=max_wait_ms_2, min_bytes=min_bytes_3, max_bytes=max_bytes_4, isolation_level=isolation_level_5, session_id=session_id_6, session_epoch=session_epoch_7, topics=topics_9, forgotten_topics_data=forgotten_topics_data_24, rack_id=rack_id_31, cluster_id=cluster_id_34), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v14', line_fields(FetchRequest, 14, 1581), pos, end) from None


def encode_FetchResponse_14(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out.append(0)
    return splices


def decode_FetchRequest_15(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_7: int
        max_wait_ms_1, min_bytes_2, max_bytes_3, isolation_level_4, session_id_5, session_epoch_6, topics_7, = unpack_iiibiiB(buf, pos)
        pos += 22
        if topics_7 > 127:
            topics_7, pos = uvarint_rest(buf, pos, topics_7)
        topics_7 -= 1
        topics_8: Any
        if topics_7 < 0 or topics_7 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_7}")
        topics_8 = []
        append_9 = topics_8.append
        for _ in range(topics_7):
            partitions_11: int
            topic_id_10, partitions_11, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_11 > 127:
                partitions_11, pos = uvarint_rest(buf, pos, partitions_11)
            partitions_11 -= 1
            partitions_12: Any
            if partitions_11 < 0 or partitions_11 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_11}")
            partitions_12 = []
            append_13 = partitions_12.append
            for _ in range(partitions_11):
                partition_14, current_leader_epoch_15, fetch_offset_16, last_fetched_epoch_17, log_start_offset_18, partition_max_bytes_19, tags_20, = unpack_iiqiqiB(buf, pos)
                pos += 33
                if tags_20:
                    pos = skip_tags(buf, pos, tags_20)
                append_13(FetchPartition(partition=partition_14, current_leader_epoch=current_leader_epoch_15, fetch_offset=fetch_offset_16, last_fetched_epoch=last_fetched_epoch_17, log_start_offset=log_start_offset_18, partition_max_bytes=partition_max_bytes_19))
            tags_21 = buf[pos]
            pos += 1
            if tags_21:
                pos = skip_tags(buf, pos, tags_21)
            append_9(FetchTopic(topic_id=topic_id_10, partitions=partitions_12))
        forgotten_topics_data_22: int
        forgotten_topics_data_22 = buf[pos]
        pos += 1
        if forgotten_topics_data_22 > 127:
            forgotten_topics_data_22, pos = uvarint_rest(buf, pos, forgotten_topics_data_22)
        forgotten_topics_data_22 -= 1
        forgotten_topics_data_23: Any
        if forgotten_topics_data_22 < 0 or forgotten_topics_data_22 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_22}")
        forgotten_topics_data_23 = []
        append_24 = forgotten_topics_data_23.append
        for _ in range(forgotten_topics_data_22):
            partitions_26: int
            topic_id_25, partitions_26, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_26 > 127:
                partitions_26, pos = uvarint_rest(buf, pos, partitions_26)
            partitions_26 -= 1
            partitions_27: Any
            if partitions_26 < 0 or partitions_26 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_26}")
            partitions_27 = list(repeated('i', partitions_26).unpack_from(buf, pos))
            pos += partitions_26 * 4
            tags_28 = buf[pos]
            pos += 1
            if tags_28:
                pos = skip_tags(buf, pos, tags_28)
            append_24(ForgottenTopic(topic_id=topic_id_25, partitions=partitions_27))
        rack_id_29: int
        rack_id_29 = buf[pos]
        pos += 1
        if rack_id_29 > 127:
            rack_id_29, pos = uvarint_rest(buf, pos, rack_id_29)
            if rack_id_29 > 32768:
                raise MalformedError(f"impossible length {rack_id_29 - 1}")
        rack_id_29 -= 1
        rack_id_30: Any
        at_31 = pos
        pos += rack_id_29
        if rack_id_29 < 0 or pos > end:
            pos = at_31
            raise MalformedError(f"impossible length {rack_id_29}")
        rack_id_30 = str(buf[at_31:pos], "utf-8")
        tags_32 = buf[pos]
        pos += 1
        cluster_id_33: Any = DEFAULT_cluster_id
        replica_state_34: Any = DEFAULT_replica_state
        if tags_32:
            if tags_32 > 127:
                tags_32, pos = uvarint_rest(buf, pos, tags_32)
            check_tags(tags_32, end - pos)
            for _ in range(tags_32):
                tag_35, pos = uvarint(buf, pos)
                size_36, pos = uvarint(buf, pos)
                stop_37 = pos + size_36
                if stop_37 > end:
                    raise MalformedError(f"impossible size {size_36}")
                if tag_35 == 0:
                    cluster_id_38: int
                    cluster_id_38 = buf[pos]
                    pos += 1
                    if cluster_id_38 > 127:
                        cluster_id_38, pos = uvarint_rest(buf, pos, cluster_id_38)
                        if cluster_id_38 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_38 - 1}")
                    cluster_id_38 -= 1
                    cluster_id_39: Any
                    if cluster_id_38 == -1:
                        cluster_id_39 = None
                    else:
                        at_40 = pos
                        pos += cluster_id_38
                        if cluster_id_38 < 0 or pos > end:
                            pos = at_40
                            raise MalformedError(f"impossible length {cluster_id_38}")
                        cluster_id_39 = str(buf[at_40:pos], "utf-8")
                    cluster_id_33 = cluster_id_39
                elif tag_35 == 1:
                    replica_id_41, replica_epoch_42, tags_43, = unpack_iqB(buf, pos)
                    pos += 13
                    if tags_43:
                        pos = skip_tags(buf, pos, tags_43)
                    replica_state_34 = ReplicaState(replica_id=replica_id_41, replica_epoch=replica_epoch_42)
                else:
                    pos = stop_37
                if pos != stop_37:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(max_wait_ms=max_wait_ms_1, min_bytes=min_bytes_2, max_bytes=max_bytes_3, isolation_level=isolation_level_4, session_id=session_id_5, session_epoch=session_epoch_6, topics=topics_8, forgotten_topics_data=forgotten_topics_data_23, rack_id=rack_id_30, cluster_id=cluster_id_33, replica_state=replica_state_34), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v15', line_fields(FetchRequest, 15, 1790), pos, end) from None


def encode_FetchResponse_15(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    out.append(0)
    return splices


def decode_FetchRequest_16(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_7: int
        max_wait_ms_1, min_bytes_2, max_bytes_3, isolation_level_4, session_id_5, session_epoch_6, topics_7, = unpack_iiibiiB(buf, pos)
        pos += 22
        if topics_7 > 127:
            topics_7, pos = uvarint_rest(buf, pos, topics_7)
        topics_7 -= 1
        topics_8: Any
        if topics_7 < 0 or topics_7 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_7}")
        topics_8 = []
        append_9 = topics_8.append
        for _ in range(topics_7):
            partitions_11: int
            topic_id_10, partitions_11, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_11 > 127:
                partitions_11, pos = uvarint_rest(buf, pos, partitions_11)
            partitions_11 -= 1
            partitions_12: Any
            if partitions_11 < 0 or partitions_11 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_11}")
            partitions_12 = []
            append_13 = partitions_12.append
            for _ in range(partitions_11):
                partition_14, current_leader_epoch_15, fetch_offset_16, last_fetched_epoch_17, log_start_offset_18, partition_max_bytes_19, tags_20, = unpack_iiqiqiB(buf, pos)
                pos += 33
                if tags_20:
                    pos = skip_tags(buf, pos, tags_20)
                append_13(FetchPartition(partition=partition_14, current_leader_epoch=current_leader_epoch_15, fetch_offset=fetch_offset_16, last_fetched_epoch=last_fetched_epoch_17, log_start_offset=log_start_offset_18, partition_max_bytes=partition_max_bytes_19))
            tags_21 = buf[pos]
            pos += 1
            if tags_21:
                pos = skip_tags(buf, pos, tags_21)
            append_9(FetchTopic(topic_id=topic_id_10, partitions=partitions_12))
        forgotten_topics_data_22: int
        forgotten_topics_data_22 = buf[pos]
        pos += 1
        if forgotten_topics_data_22 > 127:
            forgotten_topics_data_22, pos = uvarint_rest(buf, pos, forgotten_topics_data_22)
        forgotten_topics_data_22 -= 1
        forgotten_topics_data_23: Any
        if forgotten_topics_data_22 < 0 or forgotten_topics_data_22 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_22}")
        forgotten_topics_data_23 = []
        append_24 = forgotten_topics_data_23.append
        for _ in range(forgotten_topics_data_22):
            partitions_26: int
            topic_id_25, partitions_26, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_26 > 127:
                partitions_26, pos = uvarint_rest(buf, pos, partitions_26)
            partitions_26 -= 1
            partitions_27: Any
            if partitions_26 < 0 or partitions_26 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_26}")
            partitions_27 = list(repeated('i', partitions_26).unpack_from(buf, pos))
            pos += partitions_26 * 4
            tags_28 = buf[pos]
            pos += 1
            if tags_28:
                pos = skip_tags(buf, pos, tags_28)
            append_24(ForgottenTopic(topic_id=topic_id_25, partitions=partitions_27))
        rack_id_29: int
        rack_id_29 = buf[pos]
        pos += 1
        if rack_id_29 > 127:
            rack_id_29, pos = uvarint_rest(buf, pos, rack_id_29)
            if rack_id_29 > 32768:
                raise MalformedError(f"impossible length {rack_id_29 - 1}")
        rack_id_29 -= 1
        rack_id_30: Any
        at_31 = pos
        pos += rack_id_29
        if rack_id_29 < 0 or pos > end:
            pos = at_31
            raise MalformedError(f"impossible length {rack_id_29}")
        rack_id_30 = str(buf[at_31:pos], "utf-8")
        tags_32 = buf[pos]
        pos += 1
        cluster_id_33: Any = DEFAULT_cluster_id
        replica_state_34: Any = DEFAULT_replica_state
        if tags_32:
            if tags_32 > 127:
                tags_32, pos = uvarint_rest(buf, pos, tags_32)
            check_tags(tags_32, end - pos)
            for _ in range(tags_32):
                tag_35, pos = uvarint(buf, pos)
                size_36, pos = uvarint(buf, pos)
                stop_37 = pos + size_36
                if stop_37 > end:
                    raise MalformedError(f"impossible size {size_36}")
                if tag_35 == 0:
                    cluster_id_38: int
                    cluster_id_38 = buf[pos]
                    pos += 1
                    if cluster_id_38 > 127:
                        cluster_id_38, pos = uvarint_rest(buf, pos, cluster_id_38)
                        if cluster_id_38 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_38 - 1}")
                    cluster_id_38 -= 1
                    cluster_id_39: Any
                    if cluster_id_38 == -1:
                        cluster_id_39 = None
                    else:
                        at_40 = pos
                        pos += cluster_id_38
                        if cluster_id_38 < 0 or pos > end:
                            pos = at_40
                            raise MalformedError(f"impossible length {cluster_id_38}")
                        cluster_id_39 = str(buf[at_40:pos], "utf-8")
                    cluster_id_33 = cluster_id_39
                elif tag_35 == 1:
                    replica_id_41, replica_epoch_42, tags_43, = unpack_iqB(buf, pos)
                    pos += 13
                    if tags_43:
                        pos = skip_tags(buf, pos, tags_43)
                    replica_state_34 = ReplicaState(replica_id=replica_id_41, replica_epoch=replica_epoch_42)
                else:
                    pos = stop_37
                if pos != stop_37:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(max_wait_ms=max_wait_ms_1, min_bytes=min_bytes_2, max_bytes=max_bytes_3, isolation_level=isolation_level_4, session_id=session_id_5, session_epoch=session_epoch_6, topics=topics_8, forgotten_topics_data=forgotten_topics_data_23, rack_id=rack_id_30, cluster_id=cluster_id_33, replica_state=replica_state_34), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v16', line_fields(FetchRequest, 16, 2006), pos, end) from None


def encode_FetchResponse_16(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_FetchRequest_17(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_7: int
        max_wait_ms_1, min_bytes_2, max_bytes_3, isolation_level_4, session_id_5, session_epoch_6, topics_7, = unpack_iiibiiB(buf, pos)
        pos += 22
        if topics_7 > 127:
            topics_7, pos = uvarint_rest(buf, pos, topics_7)
        topics_7 -= 1
        topics_8: Any
        if topics_7 < 0 or topics_7 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_7}")
        topics_8 = []
        append_9 = topics_8.append
        for _ in range(topics_7):
            partitions_11: int
            topic_id_10, partitions_11, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_11 > 127:
                partitions_11, pos = uvarint_rest(buf, pos, partitions_11)
            partitions_11 -= 1
            partitions_12: Any
            if partitions_11 < 0 or partitions_11 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_11}")
            partitions_12 = []
            append_13 = partitions_12.append
            for _ in range(partitions_11):
                partition_14, current_leader_epoch_15, fetch_offset_16, last_fetched_epoch_17, log_start_offset_18, partition_max_bytes_19, tags_20, = unpack_iiqiqiB(buf, pos)
                pos += 33
                replica_directory_id_21: Any = DEFAULT_replica_directory_id
                if tags_20:
                    if tags_20 > 127:
                        tags_20, pos = uvarint_rest(buf, pos, tags_20)
                    check_tags(tags_20, end - pos)
                    for _ in range(tags_20):
                        tag_22, pos = uvarint(buf, pos)
                        size_23, pos = uvarint(buf, pos)
                        stop_24 = pos + size_23
                        if stop_24 > end:
                            raise MalformedError(f"impossible size {size_23}")
                        if tag_22 == 0:
                            replica_directory_id_25, = unpack_16s(buf, pos)
                            pos += 16
                            replica_directory_id_21 = replica_directory_id_25
                        else:
                            pos = stop_24
                        if pos != stop_24:
                            raise MalformedError("contents do not match the declared size")
                append_13(FetchPartition(partition=partition_14, current_leader_epoch=current_leader_epoch_15, fetch_offset=fetch_offset_16, last_fetched_epoch=last_fetched_epoch_17, log_start_offset=log_start_offset_18, partition_max_bytes=partition_max_bytes_19, replica_directory_id=replica_directory_id_21))
            tags_26 = buf[pos]
            pos += 1
            if tags_26:
                pos = skip_tags(buf, pos, tags_26)
            append_9(FetchTopic(topic_id=topic_id_10, partitions=partitions_12))
        forgotten_topics_data_27: int
        forgotten_topics_data_27 = buf[pos]
        pos += 1
        if forgotten_topics_data_27 > 127:
            forgotten_topics_data_27, pos = uvarint_rest(buf, pos, forgotten_topics_data_27)
        forgotten_topics_data_27 -= 1
        forgotten_topics_data_28: Any
        if forgotten_topics_data_27 < 0 or forgotten_topics_data_27 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_27}")
        forgotten_topics_data_28 = []
        append_29 = forgotten_topics_data_28.append
        for _ in range(forgotten_topics_data_27):
            partitions_31: int
            topic_id_30, partitions_31, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_31 > 127:
                partitions_31, pos = uvarint_rest(buf, pos, partitions_31)
            partitions_31 -= 1
            partitions_32: Any
            if partitions_31 < 0 or partitions_31 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_31}")
            partitions_32 = list(repeated('i', partitions_31).unpack_from(buf, pos))
            pos += partitions_31 * 4
            tags_33 = buf[pos]
            pos += 1
            if tags_33:
                pos = skip_tags(buf, pos, tags_33)
            append_29(ForgottenTopic(topic_id=topic_id_30, partitions=partitions_32))
        rack_id_34: int
        rack_id_34 = buf[pos]
        pos += 1
        if rack_id_34 > 127:
            rack_id_34, pos = uvarint_rest(buf, pos, rack_id_34)
            if rack_id_34 > 32768:
                raise MalformedError(f"impossible length {rack_id_34 - 1}")
        rack_id_34 -= 1
        rack_id_35: Any
        at_36 = pos
        pos += rack_id_34
        if rack_id_34 < 0 or pos > end:
            pos = at_36
            raise MalformedError(f"impossible length {rack_id_34}")
        rack_id_35 = str(buf[at_36:pos], "utf-8")
        tags_37 = buf[pos]
        pos += 1
        cluster_id_38: Any = DEFAULT_cluster_id
        replica_state_39: Any = DEFAULT_replica_state
        if tags_37:
            if tags_37 > 127:
                tags_37, pos = uvarint_rest(buf, pos, tags_37)
            check_tags(tags_37, end - pos)
            for _ in range(tags_37):
                tag_40, pos = uvarint(buf, pos)
                size_41, pos = uvarint(buf, pos)
                stop_42 = pos + size_41
                if stop_42 > end:
                    raise MalformedError(f"impossible size {size_41}")
                if tag_40 == 0:
                    cluster_id_43: int
                    cluster_id_43 = buf[pos]
                    pos += 1
                    if cluster_id_43 > 127:
                        cluster_id_43, pos = uvarint_rest(buf, pos, cluster_id_43)
                        if cluster_id_43 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_43 - 1}")
                    cluster_id_43 -= 1
                    cluster_id_44: Any
                    if cluster_id_43 == -1:
                        cluster_id_44 = None
                    else:
                        at_45 = pos
                        pos += cluster_id_43
                        if cluster_id_43 < 0 or pos > end:
                            pos = at_45
                            raise MalformedError(f"impossible length {cluster_id_43}")
                        cluster_id_44 = str(buf[at_45:pos], "utf-8")
                    cluster_id_38 = cluster_id_44
                elif tag_40 == 1:
                    replica_id_46, replica_epoch_47, tags_48, = unpack_iqB(buf, pos)
                    pos += 13
                    if tags_48:
                        pos = skip_tags(buf, pos, tags_48)
                    replica_state_39 = ReplicaState(replica_id=replica_id_46, replica_epoch=replica_epoch_47)
                else:
                    pos = stop_42
                if pos != stop_42:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(max_wait_ms=max_wait_ms_1, min_bytes=min_bytes_2, max_bytes=max_bytes_3, isolation_level=isolation_level_4, session_id=session_id_5, session_epoch=session_epoch_6, topics=topics_8, forgotten_topics_data=forgotten_topics_data_28, rack_id=rack_id_35, cluster_id=cluster_id_38, replica_state=replica_state_39), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v17', line_fields(FetchRequest, 17, 2264), pos, end) from None


def encode_FetchResponse_17(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_FetchRequest_18(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_7: int
        max_wait_ms_1, min_bytes_2, max_bytes_3, isolation_level_4, session_id_5, session_epoch_6, topics_7, = unpack_iiibiiB(buf, pos)
        pos += 22
        if topics_7 > 127:
            topics_7, pos = uvarint_rest(buf, pos, topics_7)
        topics_7 -= 1
        topics_8: Any
        if topics_7 < 0 or topics_7 * 18 > end - pos:
            raise MalformedError(f"impossible count {topics_7}")
        topics_8 = []
        append_9 = topics_8.append
        for _ in range(topics_7):
            partitions_11: int
            topic_id_10, partitions_11, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_11 > 127:
                partitions_11, pos = uvarint_rest(buf, pos, partitions_11)
            partitions_11 -= 1
            partitions_12: Any
            if partitions_11 < 0 or partitions_11 * 33 > end - pos:
                raise MalformedError(f"impossible count {partitions_11}")
            partitions_12 = []
            append_13 = partitions_12.append
            for _ in range(partitions_11):
                partition_14, current_leader_epoch_15, fetch_offset_16, last_fetched_epoch_17, log_start_offset_18, partition_max_bytes_19, tags_20, = unpack_iiqiqiB(buf, pos)
                pos += 33
                replica_directory_id_21: Any = DEFAULT_replica_directory_id
                high_watermark_22: Any = DEFAULT_high_watermark
                if tags_20:
                    if tags_20 > 127:
                        tags_20, pos = uvarint_rest(buf, pos, tags_20)
                    check_tags(tags_20, end - pos)
                    for _ in range(tags_20):
                        tag_23, pos = uvarint(buf, pos)
                        size_24, pos = uvarint(buf, pos)
                        stop_25 = pos + size_24
                        if stop_25 > end:
                            raise MalformedError(f"impossible size {size_24}")
                        if tag_23 == 0:
                            replica_directory_id_26, = unpack_16s(buf, pos)
                            pos += 16
                            replica_directory_id_21 = replica_directory_id_26
                        elif tag_23 == 1:
                            high_watermark_27, = unpack_q(buf, pos)
                            pos += 8
                            high_watermark_22 = high_watermark_27
                        else:
                            pos = stop_25
                        if pos != stop_25:
                            raise MalformedError("contents do not match the declared size")
                append_13(FetchPartition(partition=partition_14, current_leader_epoch=current_leader_epoch_15, fetch_offset=fetch_offset_16, last_fetched_epoch=last_fetched_epoch_17, log_start_offset=log_start_offset_18, partition_max_bytes=partition_max_bytes_19, replica_directory_id=replica_directory_id_21, high_watermark=high_watermark_22))
            tags_28 = buf[pos]
            pos += 1
            if tags_28:
                pos = skip_tags(buf, pos, tags_28)
            append_9(FetchTopic(topic_id=topic_id_10, partitions=partitions_12))
        forgotten_topics_data_29: int
        forgotten_topics_data_29 = buf[pos]
        pos += 1
        if forgotten_topics_data_29 > 127:
            forgotten_topics_data_29, pos = uvarint_rest(buf, pos, forgotten_topics_data_29)
        forgotten_topics_data_29 -= 1
        forgotten_topics_data_30: Any
        if forgotten_topics_data_29 < 0 or forgotten_topics_data_29 * 18 > end - pos:
            raise MalformedError(f"impossible count {forgotten_topics_data_29}")
        forgotten_topics_data_30 = []
        append_31 = forgotten_topics_data_30.append
        for _ in range(forgotten_topics_data_29):
            partitions_33: int
            topic_id_32, partitions_33, = unpack_16sB(buf, pos)
            pos += 17
            if partitions_33 > 127:
                partitions_33, pos = uvarint_rest(buf, pos, partitions_33)
            partitions_33 -= 1
            partitions_34: Any
            if partitions_33 < 0 or partitions_33 * 4 > end - pos:
                raise MalformedError(f"impossible count {partitions_33}")
            partitions_34 = list(repeated('i', partitions_33).unpack_from(buf, pos))
            pos += partitions_33 * 4
            tags_35 = buf[pos]
            pos += 1
            if tags_35:
                pos = skip_tags(buf, pos, tags_35)
            append_31(ForgottenTopic(topic_id=topic_id_32, partitions=partitions_34))
        rack_id_36: int
        rack_id_36 = buf[pos]
        pos += 1
        if rack_id_36 > 127:
            rack_id_36, pos = uvarint_rest(buf, pos, rack_id_36)
            if rack_id_36 > 32768:
                raise MalformedError(f"impossible length {rack_id_36 - 1}")
        rack_id_36 -= 1
        rack_id_37: Any
        at_38 = pos
        pos += rack_id_36
        if rack_id_36 < 0 or pos > end:
            pos = at_38
            raise MalformedError(f"impossible length {rack_id_36}")
        rack_id_37 = str(buf[at_38:pos], "utf-8")
        tags_39 = buf[pos]
        pos += 1
        cluster_id_40: Any = DEFAULT_cluster_id
        replica_state_41: Any = DEFAULT_replica_state
        if tags_39:
            if tags_39 > 127:
                tags_39, pos = uvarint_rest(buf, pos, tags_39)
            check_tags(tags_39, end - pos)
            for _ in range(tags_39):
                tag_42, pos = uvarint(buf, pos)
                size_43, pos = uvarint(buf, pos)
                stop_44 = pos + size_43
                if stop_44 > end:
                    raise MalformedError(f"impossible size {size_43}")
                if tag_42 == 0:
                    cluster_id_45: int
                    cluster_id_45 = buf[pos]
                    pos += 1
                    if cluster_id_45 > 127:
                        cluster_id_45, pos = uvarint_rest(buf, pos, cluster_id_45)
                        if cluster_id_45 > 32768:
                            raise MalformedError(f"impossible length {cluster_id_45 - 1}")
                    cluster_id_45 -= 1
                    cluster_id_46: Any
                    if cluster_id_45 == -1:
                        cluster_id_46 = None
                    else:
                        at_47 = pos
                        pos += cluster_id_45
                        if cluster_id_45 < 0 or pos > end:
                            pos = at_47
                            raise MalformedError(f"impossible length {cluster_id_45}")
                        cluster_id_46 = str(buf[at_47:pos], "utf-8")
                    cluster_id_40 = cluster_id_46
                elif tag_42 == 1:
                    replica_id_48, replica_epoch_49, tags_50, = unpack_iqB(buf, pos)
                    pos += 13
                    if tags_50:
                        pos = skip_tags(buf, pos, tags_50)
                    replica_state_41 = ReplicaState(replica_id=replica_id_48, replica_epoch=replica_epoch_49)
                else:
                    pos = stop_44
                if pos != stop_44:
                    raise MalformedError("contents do not match the declared size")
        return FetchRequest(max_wait_ms=max_wait_ms_1, min_bytes=min_bytes_2, max_bytes=max_bytes_3, isolation_level=isolation_level_4, session_id=session_id_5, session_epoch=session_epoch_6, topics=topics_8, forgotten_topics_data=forgotten_topics_data_30, rack_id=rack_id_37, cluster_id=cluster_id_40, replica_state=replica_state_41), pos
    except MALFORMED as error:
        raise malformed(error, 'FetchRequest v18', line_fields(FetchRequest, 18, 2539), pos, end) from None


def encode_FetchResponse_18(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.responses
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_ihiB(message.throttle_time_ms, message.error_code, message.session_id, size_3)
    else:
        out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.partitions
        data_7: Any
        data_7 = value_6
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_16sB(struct_5.topic_id, size_8)
        else:
            out += pack_16s(struct_5.topic_id)
            out += uvarint_bytes(size_8)
        for item_9 in data_7:
            if item_9.__class__ is bytes:
                out += item_9
                continue
            struct_10 = item_9
            value_11 = struct_10.aborted_transactions
            data_12: Any
            if value_11 is None:
                data_12, size_13 = b'', 0
            else:
                data_12 = value_11
                size_13 = len(data_12) + 1
            if size_13 < 128:
                out += pack_ihqqqB(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset, size_13)
            else:
                out += pack_ihqqq(struct_10.partition_index, struct_10.error_code, struct_10.high_watermark, struct_10.last_stable_offset, struct_10.log_start_offset)
                out += uvarint_bytes(size_13)
            for item_14 in data_12:
                if item_14.__class__ is bytes:
                    out += item_14
                    continue
                struct_15 = item_14
                out += pack_qqx(struct_15.producer_id, struct_15.first_offset)
            value_16 = struct_10.records
            data_17: Any
            if value_16 is None:
                data_17, size_18 = b'', 0
            else:
                data_17 = value_16
                size_18 = len(data_17) + 1
            if size_18 < 128:
                out += pack_iB(struct_10.preferred_read_replica, size_18)
            else:
                out += pack_i(struct_10.preferred_read_replica)
                out += uvarint_bytes(size_18)
            if isinstance(data_17, (bytes, bytearray, memoryview)):
                out += data_17
            else:
                splices = (*splices, (len(out), data_17))
            count_21 = (struct_10.diverging_epoch != DEFAULT_diverging_epoch) + (struct_10.current_leader != DEFAULT_current_leader_20) + (struct_10.snapshot_id != DEFAULT_snapshot_id)
            out.append(count_21)
            if count_21:
                if struct_10.diverging_epoch != DEFAULT_diverging_epoch:
                    tagged_22 = bytearray()
                    struct_23 = struct_10.diverging_epoch
                    tagged_22 += pack_iqx(struct_23.epoch, struct_23.end_offset)
                    out += b'\x00' + uvarint_bytes(len(tagged_22)) + tagged_22
                if struct_10.current_leader != DEFAULT_current_leader_20:
                    tagged_24 = bytearray()
                    struct_25 = struct_10.current_leader
                    tagged_24 += pack_iix(struct_25.leader_id, struct_25.leader_epoch)
                    out += b'\x01' + uvarint_bytes(len(tagged_24)) + tagged_24
                if struct_10.snapshot_id != DEFAULT_snapshot_id:
                    tagged_26 = bytearray()
                    struct_27 = struct_10.snapshot_id
                    tagged_26 += pack_qix(struct_27.end_offset, struct_27.epoch)
                    out += b'\x02' + uvarint_bytes(len(tagged_26)) + tagged_26
        out.append(0)
    count_28 = (message.node_endpoints != [])
    out.append(count_28)
    if count_28:
        if message.node_endpoints != []:
            tagged_29 = bytearray()
            value_30 = message.node_endpoints
            data_31: Any
            data_31 = value_30
            size_32 = len(data_31) + 1
            if size_32 < 128:
                tagged_29.append(size_32)
            else:
                tagged_29 += uvarint_bytes(size_32)
            for item_33 in data_31:
                if item_33.__class__ is bytes:
                    tagged_29 += item_33
                    continue
                struct_34 = item_33
                value_35 = struct_34.host
                data_36: Any
                data_36 = value_35.encode()
                size_37 = len(data_36) + 1
                if size_37 < 128:
                    tagged_29 += pack_iB(struct_34.node_id, size_37)
                else:
                    tagged_29 += pack_i(struct_34.node_id)
                    tagged_29 += uvarint_bytes(size_37)
                tagged_29 += data_36
                value_38 = struct_34.rack
                data_39: Any
                if value_38 is None:
                    data_39, size_40 = b'', 0
                else:
                    data_39 = value_38.encode()
                    size_40 = len(data_39) + 1
                if size_40 < 128:
                    tagged_29 += pack_iB(struct_34.port, size_40)
                else:
                    tagged_29 += pack_i(struct_34.port)
                    tagged_29 += uvarint_bytes(size_40)
                tagged_29 += data_39
                tagged_29.append(0)
            out += b'\x00' + uvarint_bytes(len(tagged_29)) + tagged_29
    return splices


def decode_MetadataRequest_12(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_1: int
        topics_1 = buf[pos]
        pos += 1
        if topics_1 > 127:
            topics_1, pos = uvarint_rest(buf, pos, topics_1)
        topics_1 -= 1
        topics_2: Any
        if topics_1 == -1:
            topics_2 = None
        else:
            if topics_1 < 0 or topics_1 * 18 > end - pos:
                raise MalformedError(f"impossible count {topics_1}")
            topics_2 = []
            append_3 = topics_2.append
            for _ in range(topics_1):
                name_5: int
                topic_id_4, name_5, = unpack_16sB(buf, pos)
                pos += 17
                if name_5 > 127:
                    name_5, pos = uvarint_rest(buf, pos, name_5)
                    if name_5 > 32768:
                        raise MalformedError(f"impossible length {name_5 - 1}")
                name_5 -= 1
                name_6: Any
                if name_5 == -1:
                    name_6 = None
                else:
                    at_7 = pos
                    pos += name_5
                    if name_5 < 0 or pos > end:
                        pos = at_7
                        raise MalformedError(f"impossible length {name_5}")
                    name_6 = str(buf[at_7:pos], "utf-8")
                tags_8 = buf[pos]
                pos += 1
                if tags_8:
                    pos = skip_tags(buf, pos, tags_8)
                append_3(MetadataRequestTopic(topic_id=topic_id_4, name=name_6))
        allow_auto_topic_creation_9, include_topic_authorized_operations_10, tags_11, = unpack_ooB(buf, pos)
        pos += 3
        if tags_11:
            pos = skip_tags(buf, pos, tags_11)
        return MetadataRequest(topics=topics_2, allow_auto_topic_creation=allow_auto_topic_creation_9, include_topic_authorized_operations=include_topic_authorized_operations_10), pos
    except MALFORMED as error:
        raise malformed(error, 'MetadataRequest v12', line_fields(MetadataRequest, 12, 2819), pos, end) from None


def encode_MetadataResponse_12(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    if message.error_code:
        raise UnencodableError('MetadataResponse.error_code is not in version 12' + f': error {message.error_code}')
    value_1 = message.brokers
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_iB(message.throttle_time_ms, size_3)
    else:
        out += pack_i(message.throttle_time_ms)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.host
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_iB(struct_5.node_id, size_8)
        else:
            out += pack_i(struct_5.node_id)
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.rack
        data_10: Any
        if value_9 is None:
            data_10, size_11 = b'', 0
        else:
            data_10 = value_9.encode()
            size_11 = len(data_10) + 1
        if size_11 < 128:
            out += pack_iB(struct_5.port, size_11)
        else:
            out += pack_i(struct_5.port)
            out += uvarint_bytes(size_11)
        out += data_10
        out.append(0)
    value_12 = message.cluster_id
    data_13: Any
    if value_12 is None:
        data_13, size_14 = b'', 0
    else:
        data_13 = value_12.encode()
        size_14 = len(data_13) + 1
    if size_14 < 128:
        out.append(size_14)
    else:
        out += uvarint_bytes(size_14)
    out += data_13
    value_15 = message.topics
    data_16: Any
    data_16 = value_15
    size_17 = len(data_16) + 1
    if size_17 < 128:
        out += pack_iB(message.controller_id, size_17)
    else:
        out += pack_i(message.controller_id)
        out += uvarint_bytes(size_17)
    for item_18 in data_16:
        if item_18.__class__ is bytes:
            out += item_18
            continue
        struct_19 = item_18
        value_20 = struct_19.name
        data_21: Any
        if value_20 is None:
            data_21, size_22 = b'', 0
        else:
            data_21 = value_20.encode()
            size_22 = len(data_21) + 1
        if size_22 < 128:
            out += pack_hB(struct_19.error_code, size_22)
        else:
            out += pack_h(struct_19.error_code)
            out += uvarint_bytes(size_22)
        out += data_21
        value_23 = struct_19.partitions
        data_24: Any
        data_24 = value_23
        size_25 = len(data_24) + 1
        if size_25 < 128:
            out += pack_16soB(struct_19.topic_id, struct_19.is_internal, size_25)
        else:
            out += pack_16so(struct_19.topic_id, struct_19.is_internal)
            out += uvarint_bytes(size_25)
        for item_26 in data_24:
            if item_26.__class__ is bytes:
                out += item_26
                continue
            struct_27 = item_26
            value_28 = struct_27.replica_nodes
            data_29: Any
            data_29 = value_28
            size_30 = len(data_29) + 1
            if size_30 < 128:
                out += pack_hiiiB(struct_27.error_code, struct_27.partition_index, struct_27.leader_id, struct_27.leader_epoch, size_30)
            else:
                out += pack_hiii(struct_27.error_code, struct_27.partition_index, struct_27.leader_id, struct_27.leader_epoch)
                out += uvarint_bytes(size_30)
            out += repeated('i', len(data_29)).pack(*data_29)
            value_31 = struct_27.isr_nodes
            data_32: Any
            data_32 = value_31
            size_33 = len(data_32) + 1
            if size_33 < 128:
                out.append(size_33)
            else:
                out += uvarint_bytes(size_33)
            out += repeated('i', len(data_32)).pack(*data_32)
            value_34 = struct_27.offline_replicas
            data_35: Any
            data_35 = value_34
            size_36 = len(data_35) + 1
            if size_36 < 128:
                out.append(size_36)
            else:
                out += uvarint_bytes(size_36)
            out += repeated('i', len(data_35)).pack(*data_35)
            out.append(0)
        out += pack_ix(struct_19.topic_authorized_operations)
    out.append(0)
    return splices


def decode_MetadataRequest_13(buf: Buffer, pos: int = 0) -> tuple[Any, int]:
    end = len(buf)
    try:
        topics_1: int
        topics_1 = buf[pos]
        pos += 1
        if topics_1 > 127:
            topics_1, pos = uvarint_rest(buf, pos, topics_1)
        topics_1 -= 1
        topics_2: Any
        if topics_1 == -1:
            topics_2 = None
        else:
            if topics_1 < 0 or topics_1 * 18 > end - pos:
                raise MalformedError(f"impossible count {topics_1}")
            topics_2 = []
            append_3 = topics_2.append
            for _ in range(topics_1):
                name_5: int
                topic_id_4, name_5, = unpack_16sB(buf, pos)
                pos += 17
                if name_5 > 127:
                    name_5, pos = uvarint_rest(buf, pos, name_5)
                    if name_5 > 32768:
                        raise MalformedError(f"impossible length {name_5 - 1}")
                name_5 -= 1
                name_6: Any
                if name_5 == -1:
                    name_6 = None
                else:
                    at_7 = pos
                    pos += name_5
                    if name_5 < 0 or pos > end:
                        pos = at_7
                        raise MalformedError(f"impossible length {name_5}")
                    name_6 = str(buf[at_7:pos], "utf-8")
                tags_8 = buf[pos]
                pos += 1
                if tags_8:
                    pos = skip_tags(buf, pos, tags_8)
                append_3(MetadataRequestTopic(topic_id=topic_id_4, name=name_6))
        allow_auto_topic_creation_9, include_topic_authorized_operations_10, tags_11, = unpack_ooB(buf, pos)
        pos += 3
        if tags_11:
            pos = skip_tags(buf, pos, tags_11)
        return MetadataRequest(topics=topics_2, allow_auto_topic_creation=allow_auto_topic_creation_9, include_topic_authorized_operations=include_topic_authorized_operations_10), pos
    except MALFORMED as error:
        raise malformed(error, 'MetadataRequest v13', line_fields(MetadataRequest, 13, 2998), pos, end) from None


def encode_MetadataResponse_13(message: Any, out: bytearray) -> Sequence[Any]:
    splices: Sequence[Any] = ()
    value_1 = message.brokers
    data_2: Any
    data_2 = value_1
    size_3 = len(data_2) + 1
    if size_3 < 128:
        out += pack_iB(message.throttle_time_ms, size_3)
    else:
        out += pack_i(message.throttle_time_ms)
        out += uvarint_bytes(size_3)
    for item_4 in data_2:
        if item_4.__class__ is bytes:
            out += item_4
            continue
        struct_5 = item_4
        value_6 = struct_5.host
        data_7: Any
        data_7 = value_6.encode()
        size_8 = len(data_7) + 1
        if size_8 < 128:
            out += pack_iB(struct_5.node_id, size_8)
        else:
            out += pack_i(struct_5.node_id)
            out += uvarint_bytes(size_8)
        out += data_7
        value_9 = struct_5.rack
        data_10: Any
        if value_9 is None:
            data_10, size_11 = b'', 0
        else:
            data_10 = value_9.encode()
            size_11 = len(data_10) + 1
        if size_11 < 128:
            out += pack_iB(struct_5.port, size_11)
        else:
            out += pack_i(struct_5.port)
            out += uvarint_bytes(size_11)
        out += data_10
        out.append(0)
    value_12 = message.cluster_id
    data_13: Any
    if value_12 is None:
        data_13, size_14 = b'', 0
    else:
        data_13 = value_12.encode()
        size_14 = len(data_13) + 1
    if size_14 < 128:
        out.append(size_14)
    else:
        out += uvarint_bytes(size_14)
    out += data_13
    value_15 = message.topics
    data_16: Any
    data_16 = value_15
    size_17 = len(data_16) + 1
    if size_17 < 128:
        out += pack_iB(message.controller_id, size_17)
    else:
        out += pack_i(message.controller_id)
        out += uvarint_bytes(size_17)
    for item_18 in data_16:
        if item_18.__class__ is bytes:
            out += item_18
            continue
        struct_19 = item_18
        value_20 = struct_19.name
        data_21: Any
        if value_20 is None:
            data_21, size_22 = b'', 0
        else:
            data_21 = value_20.encode()
            size_22 = len(data_21) + 1
        if size_22 < 128:
            out += pack_hB(struct_19.error_code, size_22)
        else:
            out += pack_h(struct_19.error_code)
            out += uvarint_bytes(size_22)
        out += data_21
        value_23 = struct_19.partitions
        data_24: Any
        data_24 = value_23
        size_25 = len(data_24) + 1
        if size_25 < 128:
            out += pack_16soB(struct_19.topic_id, struct_19.is_internal, size_25)
        else:
            out += pack_16so(struct_19.topic_id, struct_19.is_internal)
            out += uvarint_bytes(size_25)
        for item_26 in data_24:
            if item_26.__class__ is bytes:
                out += item_26
                continue
            struct_27 = item_26
            value_28 = struct_27.replica_nodes
            data_29: Any
            data_29 = value_28
            size_30 = len(data_29) + 1
            if size_30 < 128:
                out += pack_hiiiB(struct_27.error_code, struct_27.partition_index, struct_27.leader_id, struct_27.leader_epoch, size_30)
            else:
                out += pack_hiii(struct_27.error_code, struct_27.partition_index, struct_27.leader_id, struct_27.leader_epoch)
                out += uvarint_bytes(size_30)
            out += repeated('i', len(data_29)).pack(*data_29)
            value_31 = struct_27.isr_nodes
            data_32: Any
            data_32 = value_31
            size_33 = len(data_32) + 1
            if size_33 < 128:
                out.append(size_33)
            else:
                out += uvarint_bytes(size_33)
            out += repeated('i', len(data_32)).pack(*data_32)
            value_34 = struct_27.offline_replicas
            data_35: Any
            data_35 = value_34
            size_36 = len(data_35) + 1
            if size_36 < 128:
                out.append(size_36)
            else:
                out += uvarint_bytes(size_36)
            out += repeated('i', len(data_35)).pack(*data_35)
            out.append(0)
        out += pack_ix(struct_19.topic_authorized_operations)
    out += pack_hx(message.error_code)
    return splices


DECODERS: Final[dict[tuple[Any, int], Any]] = {
    (ProduceRequest, 9): decode_ProduceRequest_9,
    (ProduceRequest, 10): decode_ProduceRequest_10,
    (ProduceRequest, 11): decode_ProduceRequest_11,
    (ProduceRequest, 12): decode_ProduceRequest_12,
    (ProduceRequest, 13): decode_ProduceRequest_13,
    (FetchRequest, 12): decode_FetchRequest_12,
    (FetchRequest, 13): decode_FetchRequest_13,
    (FetchRequest, 14): decode_FetchRequest_14,
    (FetchRequest, 15): decode_FetchRequest_15,
    (FetchRequest, 16): decode_FetchRequest_16,
    (FetchRequest, 17): decode_FetchRequest_17,
    (FetchRequest, 18): decode_FetchRequest_18,
    (MetadataRequest, 12): decode_MetadataRequest_12,
    (MetadataRequest, 13): decode_MetadataRequest_13,
}
ENCODERS: Final[dict[tuple[Any, int], Any]] = {
    (ProduceResponse, 9): encode_ProduceResponse_9,
    (ProduceResponse, 10): encode_ProduceResponse_10,
    (ProduceResponse, 11): encode_ProduceResponse_11,
    (ProduceResponse, 12): encode_ProduceResponse_12,
    (ProduceResponse, 13): encode_ProduceResponse_13,
    (FetchResponse, 12): encode_FetchResponse_12,
    (FetchResponse, 13): encode_FetchResponse_13,
    (FetchResponse, 14): encode_FetchResponse_14,
    (FetchResponse, 15): encode_FetchResponse_15,
    (FetchResponse, 16): encode_FetchResponse_16,
    (FetchResponse, 17): encode_FetchResponse_17,
    (FetchResponse, 18): encode_FetchResponse_18,
    (MetadataResponse, 12): encode_MetadataResponse_12,
    (MetadataResponse, 13): encode_MetadataResponse_13,
}
