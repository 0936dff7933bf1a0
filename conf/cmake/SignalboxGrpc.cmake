# SPDX-License-Identifier: Apache-2.0
# Generated code of gRPC services, such as the demo's.

# signalbox_grpc_library(NAME FILE.proto): the library signalbox::NAME with the messages, the
# service and its stubs. The path of a header is that of its proto file in the project:
# "tools/proto/orders.grpc.pb.h".
function(signalbox_grpc_library name proto)
  set(root "${CMAKE_CURRENT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${root}")
  file(RELATIVE_PATH stem "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
  string(REGEX REPLACE "\\.proto$" "" stem "${stem}")
  set(generated)
  foreach(ending pb.cc pb.h grpc.pb.cc grpc.pb.h)
    list(APPEND generated "${root}/${stem}.${ending}")
  endforeach()
  add_custom_command(
    OUTPUT ${generated}
    COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${root}" "--grpc_out=${root}"
      "--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
    DEPENDS "${proto}" protobuf::protoc gRPC::grpc_cpp_plugin
    COMMENT "Generating the messages and the service of ${stem}.proto"
    VERBATIM)
  add_library(signalbox_${name} STATIC ${generated})
  add_library(signalbox::${name} ALIAS signalbox_${name})
  target_include_directories(signalbox_${name} SYSTEM PUBLIC "$<BUILD_INTERFACE:${root}>")
  target_link_libraries(signalbox_${name} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  target_compile_options(signalbox_${name} PRIVATE -O1 -g0 -w)
endfunction()
